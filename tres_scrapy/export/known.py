"""The pipeline that marks pages and domains known before the crawl, from files of the user."""

from __future__ import annotations

import csv
import json
import logging
import zlib
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import chain
from lzma import LZMAError
from pathlib import Path
from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named
from tres_scrapy.items import RelevantPage
from tres_scrapy.url.canonical import canonicalise, domain_of
from tres_scrapy.url.message import TresError, plainly, plural
from tres_scrapy.url.whole_file import open_bytes

logger = logging.getLogger(__name__)


class Known:
    """Canonical URLs, and the registrable domains of URLs and hosts."""

    def __init__(self) -> None:
        self.urls: set[str] = set()
        self.domains: set[str] = set()

    def read(self, path: Path) -> None:
        """Read URLs, hosts, or JSON lines or CSV of another crawl, also from .gz and .xz files.

        Raise OSError if the file cannot be read, ValueError at the first line in another format.
        """
        for number, names in _lines(path):
            for name in names:
                url = canonicalise(name if "//" in name else f"http://{name}/")
                if url is None:
                    raise TresError(f"{path} line {number} must be a URL or host: {name[:80]!r}")
                if "//" in name:
                    self.urls.add(url)
                self.domains.add(domain_of(url))


class NewnessPipeline:
    """Marks relevant pages whose URL or domain is in the files of TRES_KNOWN."""

    def __init__(self, known: Known) -> None:
        self._known = known

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        paths = config.output.known
        if not paths:
            raise NotConfigured
        known = Known()
        for path in paths:
            try:
                known.read(path)
            except (OSError, EOFError, LZMAError, zlib.error, csv.Error, TresError) as error:
                name = named("TRES_KNOWN")
                raise ConfigError(f"{name} cannot be read: {plainly(error)}") from None
        urls, domains = len(known.urls), len(known.domains)
        logger.info(
            "%s: %d %s and %d %s",
            named("TRES_KNOWN"),
            urls,
            plural(urls, "URL"),
            domains,
            plural(domains, "domain"),
        )
        return cls(known)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, RelevantPage):
            item.new = self._known.urls.isdisjoint((item.url, item.final_url))
            item.new_domain = item.domain not in self._known.domains
        return item


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each line and the URLs or hosts in it."""
    with open_bytes(path) as file:
        text = TextIOWrapper(file, "utf-8-sig", errors="replace", newline="")
        first = text.readline()
        if first.startswith(("url,", "domain,")):
            for number, row in enumerate(csv.DictReader(chain([first], text)), 2):
                cells = [row.get(name) for name in ("url", "final_url", "domain")]
                yield number, [cell for cell in cells if cell]
            return
        for number, line in enumerate(chain([first], text), 1):
            if line.strip() and not line.startswith("#"):
                yield number, _names(path, number, line.strip())


def _names(path: Path, number: int, line: str) -> list[str]:
    if not line.startswith("{"):
        return [line]
    try:
        row = json.loads(line)
        return [str(row["url"]), str(row.get("final_url") or row["url"])]
    except (ValueError, KeyError, RecursionError):
        raise TresError(f"{path} line {number} must be JSON with a url: {line[:80]!r}") from None
