"""What a page promises as the seed of a crawl, from its links and a sample of their pages."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tres_scrapy.topic.pack import Judged
from tres_scrapy.url.canonical import domain_of
from tres_scrapy.url.message import counted, printable

PER_SITE: Final = 10  # links of one site that count: more add no breadth
FEWEST: Final = 3  # pages of the topic that a seed must promise
SHARE: Final = 0.5  # of its sample that must be on topic
ALLOWED, FORBIDDEN = "allowed", "forbidden"
SPREAD: Final = 2  # links of one site in a sample, as long as other sites have any
WIDEST: Final = 36  # characters of a URL in the table
HEAD: Final = ("", "seed", "P", "links", "likely", "sample", "sites", "language", "robots.txt")
LINE: Final = "{:5}{:36}{:>6}{:>6}{:>7}{:>7}{:>6}  {:9}{}"
LEGEND: Final = """\
P: P(relevant) of the seed. likely: links whose text is on topic.
sample: of the best links that were fetched, how many are on topic. sites: domains of the links."""


@dataclass
class Sampled:
    """A fetched link: P(relevant) of its page, None if the fetch failed."""

    url: str
    probability: float | None = None
    relevant: bool = False


@dataclass
class SeedRating:
    """A seed with its figures; `error` says why it could not be fetched or judged.

    `likely` counts the links whose anchor text is on topic, by registrable domain. `delay` is the
    Crawl-delay of its host in seconds.
    """

    url: str
    error: str = ""
    probability: float | None = None
    relevant: bool = False
    links: int = 0
    sites: int = 0
    likely: Counter[str] = field(default_factory=Counter)
    sample: list[Sampled] = field(default_factory=list)
    languages: Counter[str] = field(default_factory=Counter)
    robots: str = ""  # ALLOWED, FORBIDDEN, "" if robots.txt could not be read
    delay: float | None = None
    is_scripted: bool = False

    def read(self, judged: Judged, threshold: float, most: int) -> list[Sampled]:
        """Note the figures of the seed's page; return a sample of at most `most` of its links."""
        links = judged.page.links
        rated = judged.actions[:, 2].tolist()
        domains = [domain_of(link.url) for link in links]
        self.probability = judged.probability
        self.relevant = self.probability >= threshold
        self.is_scripted = judged.needs_scripts
        self.links, self.sites = len(links), len(set(domains))
        self.likely.update(d for d, p in zip(domains, rated, strict=True) if p >= threshold)
        self.note_language(judged)
        order = sorted(range(len(links)), key=lambda number: -rated[number])
        chosen = _spread(order, domains)[:most]
        self.sample = [Sampled(links[number].url) for number in chosen]
        return self.sample

    def note_language(self, judged: Judged) -> None:
        """Count the language of the seed's page or of a page of its sample."""
        if judged.page.language:
            self.languages[judged.page.language] += 1

    @property
    def fetched(self) -> int:
        """The number of sampled links whose pages were judged."""
        return sum(each.probability is not None for each in self.sample)

    @property
    def on_topic(self) -> int:
        """The number of sampled links whose pages are relevant."""
        return sum(each.relevant for each in self.sample)

    @property
    def worth(self) -> float:
        """The estimated number of relevant pages one link away, at most PER_SITE of a site."""
        share = self.on_topic / self.fetched if self.fetched else 0.0
        reach = sum(min(number, PER_SITE) for number in self.likely.values())
        return max(float(self.on_topic), share * reach)

    @property
    def is_good(self) -> bool:
        """Whether a crawl may well start here."""
        is_proven = self.on_topic >= SHARE * self.fetched and self.worth >= FEWEST
        return not self.error and is_proven

    @property
    def why(self) -> str:
        """What speaks for the seed, or against it."""
        if self.error:
            return self.error
        if self.is_scripted and not self.links:
            return "no links: scripts build the page; crawl it with --render auto"
        if not self.links:
            return "no links"
        if not self.fetched:
            return f"{counted(self.links, 'link')}, but none of the sample could be fetched"
        likely = f"{counted(self.likely.total(), 'likely link')}"
        spread = f" to {counted(len(self.likely), 'site')}" if self.likely else ""
        return f"{likely}{spread}; {self.on_topic} of {self.fetched} sampled are on topic"

    def as_dict(self) -> dict[str, Any]:
        """Return all figures for a program."""
        return {
            "url": self.url,
            "take": self.is_good,
            "why": self.why,
            "worth": round(self.worth, 2),
            "error": self.error,
            "probability": self.probability,
            "relevant": self.relevant,
            "links": self.links,
            "likely": self.likely.total(),
            "likely_sites": len(self.likely),
            "sites": self.sites,
            "fetched": self.fetched,
            "on_topic": self.on_topic,
            "sample": [vars(each) for each in self.sample],
            "languages": dict(self.languages.most_common()),
            "robots": self.robots,
            "crawl_delay": self.delay,
        }


def ranked(ratings: Sequence[SeedRating]) -> list[SeedRating]:
    """Return seeds, the best first; those that could not be fetched are last."""
    return sorted(
        ratings,
        key=lambda each: (
            bool(each.error),
            not each.is_good,
            -each.worth,
            -(each.probability or 0),
        ),
    )


def _spread(order: Sequence[int], domains: Sequence[str]) -> list[int]:
    """Return links in `order`, those beyond SPREAD of a site at the end."""
    count = Counter[str]()
    first, rest = list[int](), list[int]()
    for number in order:
        count[domains[number]] += 1
        (first if count[domains[number]] <= SPREAD else rest).append(number)
    return first + rest


def table(ratings: Sequence[SeedRating]) -> str:
    """Return the figures of all seeds as an aligned table."""
    return "\n".join([LINE.format(*HEAD), *(_row(each) for each in ratings), "", LEGEND])


def advice(ratings: Sequence[SeedRating], start: Sequence[str]) -> str:
    """Return which seeds to take and which to leave, and why; `start` begins the crawl's line."""
    good = [each for each in ratings if each.is_good]
    rest = [each for each in ratings if not each.is_good]
    lines = [f"Take {len(good)} of {len(ratings)}:" if good else "Take none of these:"]
    for number, each in enumerate([*good, *rest]):
        lines += ["Leave:"] * (number == len(good) > 0)
        lines.append(f"  {_short(each.url):{WIDEST}}  {each.why}")
    if good:
        words = ["tres", "crawl", *start, *(each.url for each in good)]
        lines += ["", f"Next: {shlex.join(words)}"]
    else:
        lines += ["A good seed links to many pages of the topic: a directory, a list, a blog roll."]
    return "\n".join(map(printable, lines))


def _row(each: SeedRating) -> str:
    robots = (each.robots or "-") + (f", {each.delay:g} s" if each.delay else "")
    figures = ["-"] * 6
    if not each.error:
        figures = [
            f"{each.probability:.2f}",
            f"{each.links:,}",
            f"{each.likely.total():,}",
            f"{each.on_topic}/{each.fetched}",
            f"{each.sites:,}",
            " ".join(code for code, _ in each.languages.most_common(3)) or "-",
        ]
    mark = "take" if each.is_good else ""
    return LINE.format(mark, _short(each.url), *figures, robots).rstrip()


def _short(url: str) -> str:
    """Return a URL of at most WIDEST characters: its beginning and its end."""
    text = printable(re.sub(r"^https?://", "", url).rstrip("/"))
    half = (WIDEST - 2) // 2
    return text if len(text) < WIDEST else f"{text[:half]}…{text[-half:]}"
