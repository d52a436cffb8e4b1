"""The adaptive crawl of one database (Algorithm 1) within a budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from tres_scrapy.surface.acquired import Acquired, Ints, Record
from tres_scrapy.surface.selector import Selector
from tres_scrapy.surface.trial import Trial, Trials

WINDOW: Final = 10  # queries over which the yield is averaged

BUDGET, DRY, NO_KEYWORD = "query_budget", "dry", "no_keyword"


class Surfacing:
    """Chooses the next keyword and learns from each answer.

    First it asks the `seeds` in order, `first` of them or all. Then it asks the best candidate: a
    word that at least `min_df` acquired records hold, if there is one. It ends after `budget`
    queries, without candidates, or when the last ten queries returned on average fewer than
    `min_yield` new records; `ended` is the reason.
    """

    def __init__(
        self,
        selector: Selector,
        seeds: Iterable[str],
        *,
        first: int | None = None,
        budget: int | None = None,
        min_yield: float = 0.0,
        min_df: int = 1,
    ) -> None:
        self.acquired = Acquired()
        self.trials = Trials()
        self.ended = ""
        self._selector = selector
        self._seeds = deque(dict.fromkeys(seeds))
        self._first = len(self._seeds) if first is None else first
        self._budget = budget
        self._min_yield = min_yield
        self._min_df = min_df
        self._asked: set[str] = set()

    def next(self) -> str | None:
        """Return the keyword to ask and mark it as asked; None at the end."""
        self.ended = self.ended or self._limit()
        if self.ended:
            return None
        word = self._seed() if len(self.trials) < self._first else None
        word = word or self._best() or self._seed()
        if word is None:
            self.ended = NO_KEYWORD
            return None
        self._asked.add(word)
        return word

    def book(self, word: str, records: Sequence[Record], again: Sequence[int] = ()) -> None:
        """Learn from the answer to a keyword: its new records and the numbers of known records.

        Records are numbered from 0 in order of arrival. The trial keeps the features of the keyword
        from before the answer.
        """
        acquired = self.acquired
        number = np.array([acquired.number(word)])
        share = float(acquired.df[number[0]]) / max(acquired.records, 1)
        frozen = self._selector.describe(acquired, number)
        new, found = len(records), len(records) + len(again)
        sightings = acquired.recaptures.sightings(number)
        self.trials.add(
            Trial(int(number[0]), frozen, share, acquired.records, found, new, sightings)
        )
        acquired.recaptures.again(int(number[0]), again)
        acquired.add(records)

    def candidates(self) -> Ints:
        """Return the numbers of the candidates C."""
        df = self.acquired.df.copy()
        df[self.trials.numbers] = 0
        often = np.flatnonzero(df >= self._min_df)
        return often if len(often) else np.flatnonzero(df)

    def _seed(self) -> str | None:
        while self._seeds:
            if (word := self._seeds.popleft()) not in self._asked:
                return word
        return None

    def _best(self) -> str | None:
        candidates = self.candidates()
        if not len(candidates):
            return None
        values = self._selector.values(self.acquired, self.trials, candidates)
        return self.acquired.words[int(candidates[values.argmax()])]

    def _limit(self) -> str:
        if self._budget is not None and len(self.trials) >= self._budget:
            return BUDGET
        last = self.trials.rows[-WINDOW:]
        if len(last) == WINDOW and sum(trial.new for trial in last) < self._min_yield * WINDOW:
            return DRY
        return ""
