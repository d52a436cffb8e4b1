"""A site with a search box: its queries, one at a time, and the records it has returned."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from tres_scrapy.page.text import STOP_WORDS, tokenise
from tres_scrapy.surface.result_page import Hit, ResultReader
from tres_scrapy.surface.search_box import Interface
from tres_scrapy.surface.surfacing import Surfacing

PROBES: Final = 2  # queries for random words, whose answers show the template of the site
LETTERS: Final = [*"bcdfghjkmpqvwxz"]
MOST_FAILURES: Final = 3  # in a row, until a site is left
ROBOTS: Final = "robots"  # the reason of a failure: robots.txt forbids the request


class SearchedSite:
    """Asks the probes first, then the keywords of `surfacing`; `row` is the seed's frontier row."""

    def __init__(
        self, row: int, host: str, interface: Interface, surfacing: Surfacing, seed: int
    ) -> None:
        self.row, self.host = row, host
        self.interface, self.surfacing = interface, surfacing
        random = np.random.default_rng(seed)
        self._probes = ["".join(random.choice(LETTERS, 11)) for _ in range(PROBES)]
        self._reader = ResultReader(interface.action)
        self._known: dict[str, int] = {}  # URLs of records, numbered in order of arrival
        self.word, self.probing = "", False  # of the current query
        self.returned: dict[str, Hit] = {}  # by the current query, by URL
        self.pages = self._failures = 0

    @property
    def records(self) -> int:
        """How many records the queries so far have returned."""
        return len(self._known)

    def next_query(self, *, stopped: bool) -> bool:
        """Choose the next probe, else the next keyword unless `stopped`; False at the end."""
        self.probing = bool(self._probes)
        if self.probing:
            word: str | None = self._probes.pop(0)
        else:
            word = None if stopped else self.surfacing.next()
        self.word, self.returned, self.pages = word or "", {}, 0
        return word is not None

    def learn_empty(self, html: str, url: str) -> None:
        """Learn the template of the site from the answer to a probe."""
        self._reader.learn_empty(html, url)

    def take(self, html: str, url: str) -> tuple[list[Hit], str | None]:
        """Return the new records of a page of results, and the URL of the next page, if any."""
        hits = [hit for hit in self._reader.read(html, url) if hit.url not in self.returned]
        self._failures = 0
        self.pages += 1
        self.returned |= {hit.url: hit for hit in hits}
        following = self._reader.next_page(html, url) if hits else None
        return [hit for hit in hits if hit.url not in self._known], following

    def end_query(self) -> int:
        """Let the selector learn from the current query; return its number of new records."""
        new = [hit for url, hit in self.returned.items() if url not in self._known]
        again = [self._known[url] for url in self.returned if url in self._known]
        self._known |= {hit.url: number for number, hit in enumerate(new, len(self._known))}
        self.surfacing.book(self.word, [hit.tokens for hit in new], again)
        return len(new)

    def fail(self, reason: str) -> bool:
        """Count a failure; return whether the site is left."""
        self._failures += 1
        return reason == ROBOTS or self._failures == MOST_FAILURES or self.probing


def single_words(keywords: Iterable[str]) -> list[str]:
    """Return the words of a topic's keywords without stop words, to start with."""
    words = [word for keyword in keywords for word in tokenise(keyword)]
    return [word for word in words if word not in STOP_WORDS]
