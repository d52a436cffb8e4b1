"""Divides the page budget T of a crawl among its shards, so that the end is exact.

Pages are granted in blocks. The sum of all limits never exceeds T, and a shard fetches no page
beyond its limit, so the crawl cannot fetch more than T pages, whoever dies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from tres_scrapy.cluster.status import UNLIMITED, Status

LOW: Final = 16  # free pages below which a shard gets another block
LARGEST: Final = 64  # pages of a block
PARTS: Final = 40  # of what is left: a block is one of them at most, for each shard
TEMPERATURE: Final = 0.15  # difference of Q at which a shard gets 1/e as many pages
LEAD: Final = 2 * LARGEST  # weighted pages by which a shard may be ahead of the slowest


class Budget:
    """Grants blocks of pages by weighted fair queueing: the weight of a shard is exp(Q / 0.15).

    A single crawler fetches the best links wherever they are. So shards whose best links are worth
    less get fewer pages while better ones have links; a shard that has none, or does not report,
    holds up no other.
    """

    def __init__(self, total: int | None, limits: Sequence[int]) -> None:
        self.total = UNLIMITED * len(limits) if total is None else total
        self.limits = list(limits)
        self._turns = [0.0] * len(limits)  # pages granted, divided by the shard's weight then

    @property
    def left(self) -> int:
        """The pages that are not granted to a shard."""
        return max(0, self.total - sum(self.limits))

    def ask(self, status: Status, others: Iterable[Status]) -> int:
        """Return the limit of a shard, raised by a block if it needs one and it is its turn.

        `others` are the shards that have links to fetch and report.
        """
        shard = status.shard
        self.limits[shard] = min(self.limits[shard], max(status.limit, status.pages))
        if not status.ready or status.idle or status.free >= LOW or not self.left:
            return self.limits[shard]
        rivals = [each for each in others if each.shard != shard]
        slowest = min((self._turns[each.shard] for each in rivals), default=math.inf)
        if not math.isinf(slowest):
            self._turns[shard] = max(self._turns[shard], slowest - LEAD)  # no debt of the past
        if self._turns[shard] > slowest + LEAD:
            return self.limits[shard]
        block = self._block()
        best = max([status.value, *(each.value for each in rivals)])
        self._turns[shard] += block * math.exp(min(20.0, (best - status.value) / TEMPERATURE))
        self.limits[shard] += block
        return self.limits[shard]

    def spare(self, status: Status, others: Iterable[Status]) -> int | None:
        """Return how many free pages a shard keeps when others need them, None if it keeps all.

        When everything is granted, some shards may have free pages that they are slow to use,
        while others have none left. A shard that has links keeps one at least: what it was just
        granted is not taken back before it can use it.
        """
        rivals = [each for each in others if each.shard != status.shard and not each.idle]
        if self.left or not any(each.ready and each.free <= 0 for each in rivals):
            return None
        if status.idle:
            return 0
        free = sum(max(0, each.free) for each in (status, *rivals))
        return max(1, free // (2 * (1 + len(rivals))))

    def _block(self) -> int:
        share = self.left // (PARTS * len(self.limits))
        return min(self.left, LARGEST, max(1, share))
