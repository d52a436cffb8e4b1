"""What seeds promise, as a table, and which of them to take."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from tres_scrapy.topic.seed_rating import SeedRating
from tres_scrapy.url.message import printable

WIDEST: Final = 36  # characters of a URL in the table
HEAD: Final = ("", "seed", "P", "links", "likely", "sample", "sites", "language", "robots.txt")
LINE: Final = "{:5}{:36}{:>6}{:>6}{:>7}{:>7}{:>6}  {:9}{}"
LEGEND: Final = """\
P: P(relevant) of the seed. likely: links whose text is on topic.
sample: of the best links that were fetched, how many are on topic. sites: domains of the links."""


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
