"""OPIC: on-line page importance computation, greedy (Abiteboul, Preda and Cobena, 2003).

Each URL has cash. A fetched page shares its cash equally among its links, and the richest URL is
fetched next. Departures:

- A URL is fetched once. So only links to URLs that are still to be fetched get a share: the cash of
  the others would be lost. For the same reason no history of cash is kept.
- There is no virtual page that every page links to. It would give the same cash to all URLs.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from rivals.baseline import QueuePolicy
from tres_scrapy.agent.policy import (
    NO_TEXT,
    Decision,
    Experience,
    PageText,
)
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import SampleStore

SEED_CASH = 1.0


class OpicPolicy(QueuePolicy):
    """Fetches the URL with most cash; among equals, the one that was found first."""

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)
        self._cash: defaultdict[int, float] = defaultdict(float)  # by number of URL
        self._taken: dict[int, float] = {}  # cash of the rows being fetched

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float64]:
        """Return the cash of each URL."""
        return np.array([self._cash[url] for url in self._urls(rows)])

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Share the cash of the page among the links and add them to the queue."""
        cash = self._taken.pop(experience.row, SEED_CASH)
        for url in self._urls(outlinks):
            self._cash[url] += cash / len(outlinks)
        super().expand(experience, outlinks, page)

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Take the richest URL from the queue, and its cash."""
        decision = super().select(available)
        if decision is not None:
            (url,) = self._urls(np.array([decision.row]))
            self._taken[decision.row] = self._cash.pop(url, 0.0)
        return decision

    def _urls(self, rows: Rows) -> list[int]:
        numbers: list[int] = self.store["url"][rows].tolist()
        return numbers
