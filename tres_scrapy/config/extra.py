"""Optional packages ("extras"), which a plain crawl does not need."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

EXTRAS: Final = {
    "bench": ("matplotlib",),
    "cluster": ("fsspec", "ray"),
    "content": ("lxml_html_clean", "trafilatura"),
    "dashboard": ("plotly",),
    "parquet": ("pyarrow",),
    "render": ("playwright", "scrapy_playwright"),
    "train": ("gensim", "plotly", "scipy", "sklearn"),
}


class ExtraError(ValueError):
    """An error in one line: which packages are missing and how to install them."""


def require(extra: str, what: str) -> None:
    """Raise ExtraError if a package of the extra is missing; `what` names the feature."""
    missing = [package for package in EXTRAS[extra] if find_spec(package) is None]
    if missing:
        raise ExtraError(f"{what} needs {', '.join(missing)}: pip install 'tres-scrapy[{extra}]'")
