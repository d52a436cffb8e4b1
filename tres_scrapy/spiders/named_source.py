"""Documents as a user names them: files, folders, URLs and standard input."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tres_scrapy.config.parser import names_site, say_scheme
from tres_scrapy.page.document_file import BROKEN, Unreadable, read_pages
from tres_scrapy.spiders.fetch import fetch_lists, read_urls
from tres_scrapy.url.canonical import canonicalise, with_scheme
from tres_scrapy.url.message import TresError, reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scrapy.settings import Settings

    from tres_scrapy.page.text import Page


def read_sources(sources: Iterable[str], settings: Settings) -> Iterator[Page | Unreadable]:
    """Yield the documents of files and standard input in order, then those of URLs."""
    urls = []
    for source in sources:
        if names_site(source) and not Path(source).exists():
            say_scheme(source)
            source = with_scheme(source)  # noqa: PLW2901 - it is what was meant
        if source == "-":
            yield from read_pages(sys.stdin.buffer.read())
        elif not source.lower().startswith(("http://", "https://")):
            try:
                listed = read_urls(Path(source))
            except (OSError, TresError) as error:
                yield Unreadable(source, reason(error))
                continue
            urls += listed
            yield from () if listed else _read_path(Path(source))
        elif url := canonicalise(source):
            urls.append(url)
        else:
            yield Unreadable(source, "is not a valid URL")
    if urls:
        yield from _fetch(urls, settings)


def _read_path(path: Path) -> Iterator[Page | Unreadable]:
    empty = True
    try:
        if not path.exists():
            yield Unreadable(str(path), "no such file or folder")
            return
        for found in read_pages(path):
            empty = False
            if isinstance(found, Unreadable):
                yield replace(found, place=_located(found.place, path))
            else:
                yield replace(found, url=_located(found.url, path))
    except BROKEN as error:
        yield Unreadable(str(path), reason(error))
    else:
        if empty:
            yield Unreadable(str(path), "contains no documents")


def _located(place: str, path: Path) -> str:
    """Return the full path of a document found at `path`, or its URL."""
    if path.is_dir():
        return str(path / place)
    return f"{path}{place.removeprefix(path.name)}" if place.startswith(path.name) else place


def _fetch(urls: list[str], settings: Settings) -> Iterator[Page | Unreadable]:
    with TemporaryDirectory(prefix="tres-classify-") as folder:
        wanted = Path(folder, "pages.urls")
        pages = wanted.with_suffix(".fetched.jsonl")
        wanted.write_text("\n".join(urls), encoding="utf-8")
        try:
            fetch_lists([str(wanted)], settings)
        except TresError as error:
            yield Unreadable("URLs", str(error))
        if pages.exists():
            yield from read_pages(pages)
