"""New features 4 to 6 of waiting samples, after the topic that describes them has changed."""

from __future__ import annotations

from typing import Final

import numpy as np

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.store import SampleStore

DESCRIBED_SAMPLES: Final = 1_000  # samples that are described again after a change


class Revision:
    """Chooses the waiting samples that a changed topic describes again: the best DESCRIBED_SAMPLES.

    A topic that learns changes some fifty times in 20,000 pages, so the work is bounded. `model`
    names the model that judged the last page, "" if the topic does not learn; `described` the one
    that described waiting samples last.
    """

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self.model = ""
        self.described = ""

    def take(self) -> Rows:
        """Return the samples to describe again now [n], oldest first: none without a change."""
        rows: Rows = np.zeros(0, dtype=np.int64)
        if self.described == self.model:
            return rows
        self.described = self.model
        rows = self._store.pending_rows()
        best = np.argsort(-self._store["probability"].take(rows), kind="stable")[:DESCRIBED_SAMPLES]
        return np.sort(rows[best])

    def note(self, model: str, *, described: bool) -> None:
        """Note the model that judged a page, and whether it has described the samples taken."""
        self.model = model
        if described:
            self.described = model
