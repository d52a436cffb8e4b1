"""Policies that do not learn: breadth first, best first and the oracle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.rivals.queue_policy import QueuePolicy

_ANCHOR = FEATURES.index("anchor_probability")


class BreadthFirstPolicy(QueuePolicy):
    """Fetches URLs in the order in which they were found (Najork and Wiener, 2001)."""

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float32]:
        """Return 0 for all: among equal values the oldest is fetched first."""
        return np.zeros(len(rows), dtype=np.float32)


class BestFirstPolicy(QueuePolicy):
    """Fetches the link whose anchor text is most probably relevant (Cho et al., 1998)."""

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float32]:
        """Return P(relevant) of the anchor texts, feature 6."""
        return self.store.features(rows)[:, _ANCHOR]


class OraclePolicy(QueuePolicy):
    """Fetches relevant pages while the frontier has one: it reads the true label of each link.

    No crawler can know more about the page behind a link. The oracle does not know, however, which
    links that page has.
    """

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)
        if setup.labels is None:
            raise ValueError("policy 'oracle' needs the labels of an offline web: set Setup.labels")
        self._labels = setup.labels

    def values(self, rows: Rows, page: PageText) -> list[bool]:
        """Return the true labels."""
        return self._labels([self.store.url(row) for row in rows.tolist()])
