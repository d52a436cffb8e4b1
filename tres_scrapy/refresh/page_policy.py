"""Policies that choose the next page of a collection."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tres_scrapy.refresh.bandit import Bandit, Mask
from tres_scrapy.refresh.page_table import PageTable


class PagePolicy(Protocol):
    """Chooses the page to fetch next; the page table is updated before `end` is called."""

    def select(self, now: float, allowed: Mask) -> int:
        """Return one of the allowed pages, [n]; at least one is allowed."""

    def begin(self, page: int, now: float) -> None:
        """Note that a fetch of the page begins."""
        return

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Learn whether the page had changed; None: nothing can be learned."""
        return


class UniformPolicy(PagePolicy):
    """Chooses every page with the same probability."""

    def __init__(self, random: np.random.Generator) -> None:
        self._random = random

    def select(self, now: float, allowed: Mask) -> int:
        """Return an allowed page."""
        return int(self._random.choice(np.flatnonzero(allowed)))


class RoundRobinPolicy(PagePolicy):
    """Chooses the page with the oldest visit."""

    def __init__(self, pages: PageTable) -> None:
        self._pages = pages

    def select(self, now: float, allowed: Mask) -> int:
        """Return the allowed page that waits longest."""
        return oldest(self._pages, allowed)


class BanditPolicy(PagePolicy):
    """Lets a bandit choose an arm, then takes its page with the oldest visit (pointer M_k)."""

    def __init__(self, pages: PageTable, bandit: Bandit) -> None:
        self._pages, self.bandit = pages, bandit
        self._count = int(pages.arms.max()) + 1

    def select(self, now: float, allowed: Mask) -> int:
        """Return a page of the arm that the bandit chooses among arms with an allowed page."""
        arms = np.bincount(self._pages.arms[allowed], minlength=self._count) > 0
        arm = self.bandit.choose(arms)
        return oldest(self._pages, allowed & (self._pages.arms == arm))

    def begin(self, page: int, now: float) -> None:
        """Pass the arm of the page to the bandit."""
        self.bandit.begin(int(self._pages.arms[page]))

    def end(self, page: int, changed: bool | None, now: float) -> None:
        """Pass the result to the bandit."""
        self.bandit.end(int(self._pages.arms[page]), changed)


def oldest(pages: PageTable, allowed: Mask) -> int:
    """Return the first of the allowed pages with the oldest visit."""
    return int(np.argmin(np.where(allowed, pages.fetched, np.inf)))
