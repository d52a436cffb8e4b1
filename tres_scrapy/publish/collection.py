"""What is published of a crawl: its relevant pages by site, and the links between the sites."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final

from tres_scrapy.export.topic_view import view_pages
from tres_scrapy.report.record import Record
from tres_scrapy.rights.signal import NONE, Signal, reserved_uses
from tres_scrapy.run.run_file import Fetch

LEAD: Final = 240  # characters of a lead
SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True)
class PublishedPage:
    """A relevant page; `rights` has words for each signal, empty if the run has none."""

    url: str
    title: str
    lead: str
    why: str
    site: str
    probability: float | None
    day: str
    rights: tuple[str, ...] = ()


@dataclass
class Site:
    """The pages of a registrable domain, best first, and how many of it were fetched."""

    name: str
    number: int = 0  # by which its files are named
    fetched: int = 0
    pages: list[PublishedPage] = field(default_factory=list)


@dataclass(frozen=True)
class Collection:
    """All that is published: facts, the largest sites first, links into them from other sites."""

    topic: str
    day: str  # when the crawl started
    is_ended: bool
    fetched: int
    sites: list[Site]
    links: Mapping[tuple[str, str], int]
    reserved: int = 0  # relevant pages left out, for the use that the crawl named

    @property
    def pages(self) -> list[PublishedPage]:
        """The pages of all sites."""
        return [page for site in self.sites for page in site.pages]

    @property
    def has_rights(self) -> bool:
        """Whether the run has usage rights of at least one page."""
        return self.reserved > 0 or any(page.rights for page in self.pages)


def read_collection(record: Record) -> Collection:
    """Return what is published of a crawl, as the record is now."""
    with record.moment():
        meta, reserved = record.meta(), sum(1 for _ in record.pages())
        sites = {name: Site(name, fetched=pages) for name, pages, _ in record.domains(-1)}
        for page, stored, *_ in view_pages(record, None):
            reserved -= 1
            found = _published(record, page, tuple(map(_said, stored.rights)))
            sites.setdefault(page.domain, Site(page.domain)).pages.append(found)
        links = _links(record)
    kept = sorted((each for each in sites.values() if each.pages), key=_rank)
    for number, site in enumerate(kept, 1):
        site.number = number
        site.pages.sort(key=lambda page: -(page.probability or 0))
    names, starts = {site.name for site in kept}, record.starts()
    return Collection(
        topic=meta.get("topic", "the topic"),
        day=f"{datetime.fromtimestamp(starts[0], UTC):%Y-%m-%d}" if starts else "",
        is_ended="ended" in meta,
        fetched=sum(site.fetched for site in sites.values()),
        sites=kept,
        links={pair: count for pair, count in links.items() if pair[1] in names},
        reserved=reserved,
    )


def _rank(site: Site) -> tuple[int, str]:
    return -len(site.pages), site.name


def _published(record: Record, page: Fetch, rights: tuple[str, ...]) -> PublishedPage:
    url, text = page.final_url or page.url, SPACE.sub(" ", page.text).strip()
    day = datetime.fromtimestamp(page.time, UTC)
    return PublishedPage(
        url=url,
        title=SPACE.sub(" ", page.title).strip() or url,
        lead=shortened(text, LEAD),
        why=record.why(page),
        site=page.domain,
        probability=page.probability,
        day=f"{day:%Y-%m-%d}",
        rights=rights,
    )


def shortened(text: str, length: int) -> str:
    """Return a text, or its first words and three dots if it is longer than `length`."""
    if len(text) <= length:
        return text
    return f"{text[:length].rpartition(' ')[0] or text[:length]} …"


def _links(record: Record) -> Counter[tuple[str, str]]:
    """Return how many relevant pages of a site were found by a link of another site."""
    count: Counter[tuple[str, str]] = Counter()
    for page in record.pages():
        for parent, child in pairwise(record.trail(page)[-2:]):
            if parent.domain != child.domain:
                count[parent.domain, child.domain] += 1
    return count


def _said(signal: Signal) -> str:
    """Return a signal in words: what was said and where, and the uses that it reserves."""
    if signal.signal == NONE:
        return f"no signal was found in {signal.where}"
    uses = ", ".join(sorted(reserved_uses([signal])))
    said = f"{signal.signal}: {signal.value}".removesuffix(": ")
    return f"{said} ({signal.where})" + (f", reserved: {uses}" if uses else "")
