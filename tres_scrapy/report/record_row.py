"""The rows of a record as Python objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.report.link_part import LinkPart


class Rival(NamedTuple):
    """The best link of a leaf that was not chosen."""

    leaf: int
    q_value: float
    url: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """A completed fetch, successful or not: the columns of the table `page`."""

    step: int
    row: int
    parent: int | None
    time: float
    url: str
    final_url: str | None
    domain: str
    title: str
    anchor: str
    kind: str
    relevant: bool
    copy: bool
    reward: float
    probability: float | None
    x: dict[str, float]
    chosen: str
    leaf: int | None
    splits: int | None
    q_value: float | None
    samples: int | None
    leaves: int | None
    link: list[LinkPart]  # empty without a link model, too
    text: str  # the first characters

    @property
    def outcome(self) -> str:
        """The result: relevant, irrelevant, copy, or the kind of the failure."""
        if self.kind != PAGE:
            return self.kind
        return "relevant" if self.relevant else "copy" if self.copy else "irrelevant"


class Point(NamedTuple):
    """A point of the curve; `rate` is pages per second since the previous point."""

    step: int
    time: float
    pages: int
    relevant: int
    domains: int
    frontier: int
    leaves: int | None
    rate: float
    loss: float | None


class HealthPoint(NamedTuple):
    """The memory of a crawl in bytes, and its answers since its start by status or error."""

    time: float
    memory: int | None
    answers: dict[str, int]


class DomainCount(NamedTuple):
    """A registrable domain with its number of pages and of relevant pages."""

    name: str
    pages: int
    relevant: int
