"""The adaptive crawl of one database (Algorithm 1) within a budget, and of the site before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from tres_scrapy.crawl.failure import ROBOTS
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.surface.acquired import Acquired, Ints, Record
from tres_scrapy.surface.result_page import Hit, ResultReader
from tres_scrapy.surface.search_box import Interface
from tres_scrapy.surface.selector import Trial, expected_new, features

FIRST: Final = 5  # keywords of the topic that are asked before any word of a record
MIN_DF: Final = 2  # records that must hold a word before it is asked
WINDOW: Final = 10  # queries over which the yield is averaged

BUDGET, DRY, NO_KEYWORD = "query_budget", "dry", "no_keyword"
PROBES: Final = 2  # queries for random words, whose answers show the template of the site
LETTERS: Final = [*"bcdfghjkmpqvwxz"]
MOST_FAILURES: Final = 3  # in a row, until a site is left


class Surfacing:
    """Chooses the next keyword and learns from each answer.

    First it asks `first` of the `seeds` in order. Then it asks the best candidate: a word that at
    least MIN_DF acquired records hold, if there is one. It ends after `budget` queries, without
    candidates, or when the last ten queries returned on average fewer than `min_yield` new records;
    `ended` is the reason.
    """

    def __init__(
        self,
        seeds: Iterable[str],
        *,
        budget: int,
        first: int = FIRST,
        min_yield: float = 0.0,
    ) -> None:
        self.acquired = Acquired()
        self.trials: list[Trial] = []
        self.ended = ""
        self._seeds = deque(dict.fromkeys(seeds))
        self._first = first
        self._budget = budget
        self._min_yield = min_yield
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
        number = acquired.number(word)
        row = np.array([number])
        sightings = acquired.recaptures.sightings(row)
        self.trials.append(Trial(number, features(acquired, row), sightings, len(records)))
        acquired.recaptures.again(number, again)
        acquired.add(records)

    def candidates(self) -> Ints:
        """Return the numbers of the candidates C."""
        df = self.acquired.df.copy()
        df[[trial.number for trial in self.trials]] = 0
        often = np.flatnonzero(df >= MIN_DF)
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
        values = expected_new(self.acquired, self.trials, candidates)
        return self.acquired.words[int(candidates[values.argmax()])]

    def _limit(self) -> str:
        if len(self.trials) >= self._budget:
            return BUDGET
        last = self.trials[-WINDOW:]
        if len(last) == WINDOW and sum(trial.new for trial in last) < self._min_yield * WINDOW:
            return DRY
        return ""


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
        return reason == ROBOTS.kind or self._failures == MOST_FAILURES or self.probing


def single_words(keywords: Iterable[str]) -> list[str]:
    """Return the words of a topic's keywords without stop words, to start with."""
    words = [word for keyword in keywords for word in tokenise(keyword)]
    return [word for word in words if word not in STOP_WORDS]
