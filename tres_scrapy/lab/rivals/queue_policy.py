"""The base class of policies that fetch the sample with the highest value."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText, Policy
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.queue import FrontierQueue
from tres_scrapy.frontier.store import SampleStore


class QueuePolicy(Policy):
    """Fetches the sample with the highest value; subclasses define `values`.

    The value of a sample is computed once, when the sample is added.
    """

    def __init__(self, store: SampleStore) -> None:
        self.store = store
        self.queue = FrontierQueue(store)

    def values(self, rows: Rows, page: PageText) -> ArrayLike:
        """Return the values [n] of new samples, which are outlinks of `page`."""
        raise NotImplementedError

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the outlinks to the queue."""
        self.queue.push(outlinks, self.values(outlinks, page))

    def readmit(self, rows: Rows) -> None:
        """Add samples to the queue, valued as on a page without text."""
        self.queue.push(rows, self.values(rows, NO_TEXT))

    def select(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Take the best sample from the queue."""
        best = self.queue.pop(busy_hosts)
        return None if best is None else Decision(best[0], None, best[1])
