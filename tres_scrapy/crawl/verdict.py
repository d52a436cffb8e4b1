"""The verdict on a fetched page, and what it earns: its reward r(t+1) (P 2.1, 2.6).

| result of the fetch | reward | page of T | relevant in HR |
|---|---|---|---|
| a page with P(relevant) at the threshold or above | 1 | yes | yes |
| a page below the threshold | 0 | yes | no |
| a copy of a page fetched before | 0 | yes | no |
| a relevant page put together from phrases of other sites | 0 | yes | yes |
| a page that says noindex, unless that is ignored | 0 | yes | no |
| a page in a language that is not among `languages` | 0 | yes | no |
| the page of a seed | as any page; 1 with `trusted_seeds` | yes | as judged |
| "not found" with status 200, a wall, or any other failure | 0 | no | no |

In the paper every seed earns 1. It does not cover copies, noindex and failures.

A topic that learns describes waiting links again with the pages that it judges, and says what it
thinks of earlier pages now: `Revision`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np

from tres_scrapy.crawl.failure import BAD_DOCUMENT, SOFT_404, Failure
from tres_scrapy.frontier.admission import Scope
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.copies import NOTHING, SKETCH, Duplicates, Known, Memory
from tres_scrapy.topic.pack import OWN_THRESHOLD, Judged

FAILURE_REWARD: Final = 0.0
SUREST: Final = 1e-6  # 1 - P, at least
FOREIGN: Final = "foreign/"  # prefix in the counts of a crawl, followed by the language


class Verdicts:
    """Decides the verdict on each page, in the order in which pages are judged.

    `threshold` is the least P(relevant) of a relevant page, `language` that of its texts, "" for
    any; both come from the pack. Without `detect_copies` no page is a copy.
    """

    def __init__(
        self, threshold: float = OWN_THRESHOLD, *, language: str = "", detect_copies: bool = True
    ) -> None:
        self._threshold = threshold
        self._language = language
        self._detects_copies = detect_copies
        self._texts = Duplicates()
        self._memory = Memory()

    def of(self, judged: Judged, scope: Scope | None, site: int) -> Judged | Failure:
        """Return a page of a site with its verdict, or its failure.

        A page that says "not found" and a wall are failures and not compared with others.
        """
        if judged.is_broken:
            return BAD_DOCUMENT
        if judged.is_missing:
            return SOFT_404
        if judged.wall:
            return Failure.of_wall(judged.wall)
        is_copy, known = self.compare(judged.mark, site)
        return judged._replace(
            on_topic=judged.probability >= self._threshold,
            is_copy=is_copy,
            known=known,
            is_foreign=scope is not None and not scope.reads(judged.page.language),
        )

    def grade_of(self, judged: Judged) -> float:
        """Return how near a page came to being relevant, 0 to 1; at the threshold it is 0.71.

        Where hardly a page is relevant, pages that come near are the only sign of where they are.
        The square root keeps them apart: of odds 100 times too low, 0.1 is left.
        """
        is_worthless = judged.is_out or judged.known.is_echo
        return 0.0 if is_worthless else self._nearness(judged.probability)

    def lesson_of(self, probability: float) -> tuple[float, float]:
        """Return the reward and the target of a page with P(relevant) that may earn a reward."""
        reward = float(probability >= self._threshold)
        return reward, max(reward, self._nearness(probability))

    def is_unsupported(self, language: str) -> bool:
        """Return whether the pack was not trained for a language: its verdict is unreliable."""
        return bool(self._language) and language not in {self._language, ""}

    def _nearness(self, probability: float) -> float:
        odds, needed = (p / max(1 - p, SUREST) for p in (probability, self._threshold))
        return math.sqrt(odds / (odds + needed)) if odds else 0.0

    def compare(self, mark: bytes, site: int) -> tuple[bool, Known]:
        """Compare a page with those before, and remember it.

        Return whether it is a copy, and how much of it was said before.
        """
        if not self._detects_copies:
            return False, NOTHING
        known = self._memory.note(mark, site)
        return not self._texts.add(mark), known


_PAGE: Final = np.dtype([("sketch", "i8"), ("row", "i4")])  # the hash of the sketch
DESCRIBED_SAMPLES: Final = 1_000  # samples that are described again after a change


class Revision:
    """Chooses the waiting samples that a changed topic describes again: the best DESCRIBED_SAMPLES.

    A topic that learns changes some fifty times in 20,000 pages, so the work is bounded. `model`
    names the model that judged the last page, "" if the topic does not learn; `described` the one
    that described waiting samples last. A resumed crawl takes them again if that had not ended, and
    asks what the model says of its earlier pages, but not of seeds if these are trusted.
    """

    def __init__(self, store: SampleStore, *, trusted_seeds: bool = False) -> None:
        self._store = store
        self._trusts_seeds = trusted_seeds
        self.model = ""
        self.described = ""
        self._taken = ""  # the model for which samples were taken last
        self._asked = ""  # the model that was asked about earlier pages last
        self._pages = Table(_PAGE)  # that may be judged again

    def take(self) -> Rows:
        """Return the samples to describe again now [n], oldest first: none without a change."""
        rows: Rows = np.zeros(0, dtype=np.int64)
        if self._taken == self.model:
            return rows
        self._taken = self.model
        rows = self._store.pending_rows()
        best = np.argsort(-self._store["probability"].take(rows), kind="stable")[:DESCRIBED_SAMPLES]
        return np.sort(rows[best])

    def asks(self) -> bool:
        """Return whether to ask what the model says of earlier pages: once, after a change."""
        before, self._asked = self._asked, self.model
        return before != self.model

    def give_back(self) -> None:
        """Describe the samples taken last with another page, and ask again: theirs has failed."""
        self._taken = self._asked = ""

    def restore(self, described: str, model: str) -> None:
        """Continue an interrupted crawl."""
        self.described, self._taken, self.model = described, described, model

    def recognise(self, row: int, mark: bytes) -> None:
        """Remember a page by its fingerprint: the topic may think otherwise of it later."""
        if self._trusts_seeds and self._store.is_seed(row):
            return
        place = self._pages.extend(1).start
        self._pages["row"][place], self._pages["sketch"][place] = row, hash(mark[:SKETCH].hex())

    def lessons(
        self, again: Mapping[str, float], verdicts: Verdicts
    ) -> dict[int, tuple[float, float]]:
        """Return reward and target of pages and copies by row, given P(relevant) by sketch."""
        found = {hash(sketch): p for sketch, p in again.items()}
        places = np.flatnonzero(np.isin(self._pages["sketch"], list(found)))
        rows, sketches = (self._pages[name][places].tolist() for name in ("row", "sketch"))
        return {
            row: verdicts.lesson_of(found[sketch])
            for row, sketch in zip(rows, sketches, strict=True)
        }

    def note(self, model: str, *, described: bool) -> None:
        """Note the model that judged a page, and whether it has described the samples taken."""
        self.model = model
        if described:
            self.described = self._taken = model
