"""A fetched page before it is booked: the verdict on it and its reward r(t+1) (P 2.1, 2.6).

| result of the fetch | reward | page of T | relevant in HR |
|---|---|---|---|
| a page with P(relevant) at the threshold or above | 1 | yes | yes |
| a page below the threshold | 0 | yes | no |
| a copy of a page fetched before | 0 | yes | no |
| a page that says noindex, unless that is ignored | 0 | yes | no |
| a page in a language that is not among `languages` | 0 | yes | no |
| the page of a seed | as any page; 1 with `trusted_seeds` | yes | as judged |
| the answer to a search query | 0 | no | no |
| "not found" with status 200, or any other failure | 0 | no | no |

In the paper every seed earns 1. It does not cover copies, noindex, queries and failures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from tres_scrapy.agent.policy import Decision, PageText
from tres_scrapy.crawl.failure import SOFT_404, Failure
from tres_scrapy.page.duplicate import Duplicates
from tres_scrapy.page.text import Page
from tres_scrapy.topic.judge import Judged

FAILURE_REWARD: Final = 0.0
SUREST: Final = 1e-6  # 1 - P, at least
FOREIGN: Final = "foreign/"  # prefix in the counts of a crawl, followed by the language


class Verdict(NamedTuple):
    """The verdict on a fetched page: on topic, a copy, the answer to a search query, or hidden.

    A hidden page asks not to be kept; a foreign one is in a language that is not wanted. `grade`
    says how near the page came to being relevant.
    """

    on_topic: bool
    is_copy: bool = False
    is_query: bool = False
    is_hidden: bool = False
    is_foreign: bool = False
    grade: float = 0.0

    @property
    def relevant(self) -> bool:
        """Whether the page counts as relevant in HR and for its domain."""
        return self.on_topic and not self.is_out

    @property
    def is_out(self) -> bool:
        """Whether the page cannot be relevant, whatever it is about."""
        return self.is_copy or self.is_query or self.is_hidden or self.is_foreign


@dataclass(frozen=True, slots=True)
class Visit:
    """A fetched page, how it was found and the verdict on it."""

    row: int
    depth: int
    path: list[str]
    anchor: str
    decision: Decision
    judged: Judged
    verdict: Verdict
    fetched_at: datetime

    @property
    def relevant(self) -> bool:
        """Whether the page counts as relevant."""
        return self.verdict.relevant


def text_of(page: Page, probability: float) -> PageText:
    """Return the text of a page for policies that read more than x(s, a)."""
    urls = [link.url for link in page.links]
    contexts = dict(zip(urls, page.contexts, strict=False))
    return PageText(f"{page.title} {page.text}", contexts, probability)


def count_foreign(counts: Counter[str], language: str, packs: str) -> None:
    """Count a page whose known language is not the pack's; a pack with "" reads any.

    The verdict on such a page is unreliable.
    """
    if packs and language not in {packs, ""}:
        counts[FOREIGN + language] += 1


def foreign_pages(counts: Counter[str]) -> Counter[str]:
    """Return the number of foreign pages by language, from the counts of a crawl."""
    return Counter(
        {
            name.removeprefix(FOREIGN): count
            for name, count in counts.items()
            if name.startswith(FOREIGN)
        }
    )


class Verdicts:
    """Decides the verdict on each page, in the order in which pages are judged.

    `threshold` is the least P(relevant) of a relevant page; it comes from the pack. Without
    `detect_copies` no page is a copy.
    """

    def __init__(self, threshold: float, *, detect_copies: bool = True) -> None:
        self._threshold = threshold
        self._detects_copies = detect_copies
        self._texts = Duplicates()

    def of(
        self,
        probability: float,
        mark: bytes,
        *,
        is_missing: bool = False,
        is_query: bool = False,
        is_hidden: bool = False,
        is_foreign: bool = False,
    ) -> Verdict | Failure:
        """Return the verdict on a page from its P(relevant) and its fingerprint `mark`.

        A page that says "not found" (`is_missing`) is a failure and not compared with others.
        """
        if is_missing:
            return SOFT_404
        is_copy = self._detects_copies and not self._texts.add(mark)
        on_topic = probability >= self._threshold
        verdict = Verdict(on_topic, is_copy, is_query, is_hidden, is_foreign)
        if verdict.is_out:
            return verdict
        return verdict._replace(grade=grade_of(probability, self._threshold))

    def remember(self, marks: Iterable[bytes]) -> None:
        """Add the fingerprints of the pages that an interrupted crawl fetched."""
        for mark in marks:
            self._texts.add(mark)


def grade_of(probability: float, threshold: float) -> float:
    """Return how near P(relevant) of a page came to the threshold, 0 to 1; 0.71 is at it.

    Where hardly a page is relevant, pages that come near are the only sign of where they are. The
    square root keeps them apart: of odds 1 : 100 at the threshold, 0.1 is left.
    """
    odds, needed = (p / max(1 - p, SUREST) for p in (probability, threshold))
    return math.sqrt(odds / (odds + needed)) if odds else 0.0


def reward_of(relevant: bool, *, is_trusted: bool = False, is_query: bool = False) -> float:
    """Return r(t+1) of a page: 1 if it is relevant or trusted, 0 otherwise and for queries."""
    return float((relevant or is_trusted) and not is_query)
