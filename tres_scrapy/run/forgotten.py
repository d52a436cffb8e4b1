"""What a run has forgotten or distrusts: URLs and sites that no resumed crawl fetches."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple, Self

from tres_scrapy.frontier.host import host_of

FORGOTTEN: Final = "forgotten"  # in `meta`, and the kind of a page that was forgotten
DISTRUSTED: Final = "distrusted"  # the same of sites that are not trusted
NOWHERE: Final = "forgotten.invalid"  # the host that stands in place of forgotten URLs


class Forgotten(NamedTuple):
    """Canonical URLs, and sites with all hosts below them."""

    urls: frozenset[str] = frozenset()
    sites: frozenset[str] = frozenset()

    @classmethod
    def read(cls, database: sqlite3.Connection, name: str = FORGOTTEN) -> Self:
        """Return what a run has forgotten, or DISTRUSTED; raise ValueError if it is damaged."""
        found = database.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        if found is None:
            return cls()
        urls, sites = json.loads(found[0])
        return cls(frozenset(map(str, urls)), frozenset(map(str, sites)))

    def written(self) -> str:
        """Return the text that `read` reads."""
        return json.dumps([sorted(self.urls), sorted(self.sites)], ensure_ascii=False)

    def with_urls(self, urls: Iterable[str]) -> Self:
        """Return it with more URLs."""
        return self._replace(urls=self.urls | set(urls))

    def save(self, cursor: sqlite3.Cursor, name: str) -> None:
        """Write it to where `read` reads it."""
        cursor.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, self.written()))

    def covers(self, url: str) -> bool:
        """Return whether a URL is forgotten."""
        if not url.startswith(("http://", "https://")):
            return False
        if url in self.urls:
            return True
        host = host_of(url)
        return host == NOWHERE or any(f".{host}".endswith(f".{site}") for site in self.sites)
