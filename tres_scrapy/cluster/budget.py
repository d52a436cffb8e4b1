"""Divides the page budget T of a crawl among its shards, so that the end is exact.

Pages are granted in blocks. The sum of all limits never exceeds T, and a shard fetches no page
beyond its limit, so the crawl cannot fetch more than T pages, whatever process dies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

from tres_scrapy.cluster.message import UNLIMITED, Status

FEW_FREE: Final = 16  # free pages below which a shard gets another block
BLOCK: Final = 16  # most pages of a block
FIRST_BLOCK: Final = 2  # most pages of the first blocks: the best links of a shard are on few hosts
GROWTH: Final = 1 / 64  # of the pages fetched: so many may be under way, granted and not fetched
TEMPERATURE: Final = 0.15  # difference of Q at which a shard gets 1/e as many pages
LEAD: Final = 2 * BLOCK  # most weighted pages by which a shard may be ahead of others


class Budget:
    """Grants blocks of pages by weighted fair queueing: the weight of a shard is exp(Q / 0.15).

    A single crawler fetches the best links wherever they are. So shards whose best links are worth
    less get fewer pages while better ones have links; a shard that has none, or is slow to use what
    it has, or does not report, holds up no other. The first choices are made when little is
    learned and few links are known, and the best links of a shard are on few hosts, each of which
    answers one request at a time. So pages under way are few at first, as many as one crawler has,
    and blocks small.
    """

    def __init__(self, total: int | None, limits: Sequence[int]) -> None:
        self.total = UNLIMITED * len(limits) if total is None else total
        self.limits = list(limits)
        self._pages: dict[int, int] = {}  # of the shards that have reported
        self._turns = [0.0] * len(limits)  # pages granted, divided by the shard's weight then
        self._turn = 0.0  # at which the last block was granted

    @property
    def left(self) -> int:
        """The pages that are not granted to a shard."""
        return max(0, self.total - sum(self.limits))

    def ask(self, status: Status, others: Iterable[Status], *, slow: bool = False) -> int:
        """Return the limit of a shard, raised by a block if it needs one and it is its turn.

        `others` are the shards that report and have links. One that is `slow`, because its hosts
        rest, gets a page at a time; one that is busy gets none while others are not.
        """
        shard = status.shard
        self.limits[shard] = max(status.pages, min(self.limits[shard], status.limit))
        self._pages[shard] = status.pages
        active = [status, *(each for each in others if each.shard != shard)]
        rivals = [each for each in active[1:] if each.free < FEW_FREE and not each.busy]
        best = max(each.value for each in (status, *rivals))
        ends = (self._turn_of(each.shard) + _cost(each, best) for each in rivals)
        soonest = min(ends, default=math.inf)  # the turn after a rival's next page
        fetched = sum(self._pages.values())
        most = max(min(status.requests, 1 + fetched), GROWTH * fetched)  # pages under way
        room = most - sum(self._under_way(each) for each in active)
        share = most / len(active)  # pages under way of an average shard
        lead, cost = min(LEAD, share), _cost(status, best)
        largest = min(BLOCK, max(FIRST_BLOCK, share / 4))
        if status.busy:  # if all are, each gets a page for when a host is free
            largest = int(status.free <= 0 and not rivals)
        turn = self._turn_of(shard)
        block = int(min(self.left, largest, room, (soonest + lead - turn) / cost))
        if slow:  # the last pages are for those that can fetch them
            block = int(self.left > sum(each.free <= 0 for each in rivals))
        is_short = status.free < (1 if slow else FEW_FREE)
        if status.ready and not status.idle and is_short and block > 0:
            self._turns[shard], self._turn = turn + block * cost, max(turn, self._turn)
            self.limits[shard] += block
        return self.limits[shard]

    def spare(self, status: Status, others: Iterable[Status], *, slow: bool = False) -> int | None:
        """Return how many free pages a shard keeps, None if it keeps all.

        A shard without links keeps none. One that is `slow` keeps one, or none at the end of the
        budget while others need it.

        When everything is granted, some shards may have free pages that they are slow to use,
        while others have none left. A shard that has links keeps one at least: what it was just
        granted is not taken back before it can use it.
        """
        rivals = [each for each in others if each.shard != status.shard and not each.idle]
        if status.idle:
            return 0
        if self.left or not any(each.ready and each.free <= 0 for each in rivals):
            return 1 if slow else None
        free = sum(max(0, each.free) for each in (status, *rivals))
        return 0 if slow else max(1, free // (2 * (1 + len(rivals))))

    def _under_way(self, status: Status) -> int:
        """Return the pages that a shard is fetching, or is about to fetch."""
        return status.leased if status.busy else self.limits[status.shard] - status.pages

    def _turn_of(self, shard: int) -> float:
        """Return the turn of a shard: after a rest it has no claims of the time before."""
        return max(self._turns[shard], self._turn - LEAD)


def _cost(status: Status, best: float) -> float:
    """Return what a page of a shard costs, 1 for the shard with the best links."""
    return math.exp(min(20.0, (best - status.value) / TEMPERATURE))
