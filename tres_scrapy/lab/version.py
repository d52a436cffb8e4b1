"""The version of the code that produced a result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

DECIDING: Final = (
    "agent",
    "crawl",
    "frontier",
    "lab/policies",
    "lab/webs",
    "links",
    "page",
    "topic",
    "url",
)  # folders whose code affects what a crawl fetches


@cache
def code_version() -> str:
    """Return a hash of the code that affects results: webs, policies and what they use."""
    package, digest = files("tres_scrapy"), hashlib.sha256()
    for name in DECIDING:
        for source in _sources(package / name):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith(".py"):
            yield each
