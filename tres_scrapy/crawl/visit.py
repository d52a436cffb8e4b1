"""A fetched page before it is booked, and the count of pages in foreign languages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tres_scrapy.agent.policy import Decision, PageText
from tres_scrapy.crawl.reward import Verdict
from tres_scrapy.page.text import Page
from tres_scrapy.topic.judge import Judged

FOREIGN: Final = "foreign/"  # prefix in the counts of a crawl, followed by the language


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
