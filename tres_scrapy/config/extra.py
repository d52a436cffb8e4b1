"""Optional packages ("extras"), which a plain crawl does not need."""

from __future__ import annotations

import json
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME: Final = "tres-scrapy"  # of the distribution
EXTRAS: Final = {
    "cluster": ("fsspec", "ray"),
    "content": ("lxml_html_clean", "trafilatura"),
    "mcp": ("mcp",),
    "parquet": ("pyarrow",),
    "render": ("playwright", "scrapy_playwright"),
    "scrapyd": ("scrapyd", "scrapyd_client", "setuptools"),
    "train": ("gensim", "scipy", "sklearn"),
}
PURPOSES: Final = {
    "cluster": "tres cluster",
    "content": "the item fields markdown and date",
    "mcp": "tres mcp",
    "parquet": "feeds in Parquet",
    "render": "pages that scripts build",
    "scrapyd": "sending the project to scrapyd",
    "train": "tres train, tres vectors",
}


def require(extra: str, what: str) -> None:
    """Raise ConfigError if a package of the extra is missing; `what` names the feature."""
    from tres_scrapy.config.declaration import ConfigError  # noqa: PLC0415 - packages may be missing

    if missing := missing_packages(extra):
        raise ConfigError(f"{what} needs {', '.join(missing)}: {install_command(extra)}")


def missing_packages(extra: str) -> list[str]:
    """Return the packages of an extra that are not installed."""
    return [package for package in EXTRAS[extra] if find_spec(package) is None]


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra beside this package.

    The package is not on an index: it comes from this checkout, or from where pip got it.
    """
    origin = _origin()
    folder = checkout_folder() or _folder(origin)
    if folder is None:
        source = f"{NAME}[{extra}] @ {_address(origin)}"
    else:
        source = f"{'.' if folder == Path.cwd() else folder}[{extra}]"
    is_linked = origin.get("dir_info", {}).get("editable", False)
    return f"{pip_command()} install {'-e ' if is_linked else ''}{quote(source)}"


def pip_command() -> str:
    """Return the shell command of the pip of this interpreter."""
    python = Path(sys.executable)
    found = python.with_name("pip")
    program = found if found.exists() else python
    if program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    return quote(str(program)) if program.name == "pip" else f"{quote(str(program))} -m pip"


def checkout_folder() -> Path | None:
    """Return the checkout that this code runs from; None if it is installed."""
    package = files("tres_scrapy")
    if isinstance(package, Path) and (package.parent / "pyproject.toml").is_file():
        return package.parent
    return None


def _origin() -> dict[str, Any]:
    """Return what pip has noted about where it got the package (PEP 610)."""
    try:
        noted = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        noted = None
    return dict(json.loads(noted or "{}"))


def _folder(origin: dict[str, Any]) -> Path | None:
    """Return the checkout that was installed, if it is still there."""
    if "dir_info" not in origin:
        return None
    folder = Path(url2pathname(urlsplit(origin["url"]).path))
    return folder if folder.is_dir() else None


def _address(origin: dict[str, Any]) -> str:
    """Return the origin as pip takes it; git+URL, as the documentation says, if it is unknown."""
    if "vcs_info" in origin:
        kind, wanted = origin["vcs_info"]["vcs"], origin["vcs_info"].get("requested_revision")
        return f"{kind}+{origin['url']}{f'@{wanted}' if wanted else ''}"
    return str(origin["url"]) if "archive_info" in origin else "git+URL"
