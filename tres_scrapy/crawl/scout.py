"""Random links of the seeds among the first pages of a crawl whose topic is hardly known."""

from __future__ import annotations

from typing import Final

import numpy as np

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.store import Eligibility, SampleStore

FIRST: Final = 20  # pages
EVERY: Final = 2  # of them, one in so many is a random link of a seed


class Scout:
    """Takes a random link of a seed for every second of the first pages.

    A few keywords may lead to pages that only share them. If those are all that a topic sees, it
    learns that nothing is relevant, and nothing brings the crawl back.
    """

    def __init__(self, store: SampleStore, seed: int = 0) -> None:
        self._store = store
        self._seed = seed
        self._links: list[Rows] = []
        self.taken = 0  # pages when a link was taken last

    def note(self, outlinks: Rows) -> None:
        """Note the links of the page of a seed."""
        self._links.append(outlinks)

    def take(self, pages: int) -> Rows:
        """Return a waiting link to fetch after so many pages [1], or none [0].

        The same crawl takes the same links, after a break too.
        """
        if not self._links or self.taken == pages or pages > FIRST or not pages % EVERY:
            return np.zeros(0, dtype=np.int64)
        self.taken = pages
        links = np.concatenate(self._links)
        links = links[self._store.is_pending(links)]
        links = links[
            self._store.eligibility(links) != Eligibility.DEAD
        ]  # a resumed crawl drops these
        return np.random.default_rng((self._seed, pages)).permutation(links)[:1]
