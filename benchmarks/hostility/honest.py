"""Crawls of webs without an attacker: what it costs them that the crawler does not believe all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from comparing.simulation import Simulation, World
from numpy.typing import NDArray

from tres_scrapy.agent.trust import Trust
from tres_scrapy.config.config import Config
from tres_scrapy.crawl.share import Shares
from tres_scrapy.frontier.column import Rows
from tres_scrapy.page import copies

LOOK: Final = 50  # pages between two looks at what the report would say
TRUST: Final = Trust.excess, copies.ECHO
SEEDS: Final = {
    "sites": "http://directory.test/",
    "university": "http://www.cs.wisc.edu/directories/gradlist.html",
}
TOPICS: Final = {
    "sites": ("food", "sports", "hardware", "course"),
    "university": ("course", "faculty", "project", "student"),
}


@dataclass
class Seen:
    """What a crawl came to: relevant pages by the web's labels, warnings, and whether trust told.

    If it did not, a crawl that believes its judge makes the same choices.
    """

    relevant: int = 0
    pages: int = 0
    warnings: tuple[str, ...] = ()
    is_the_same: bool = True


def believe(*, all_of_it: bool) -> None:
    """Have crawls of this process believe their judge, or not."""
    excess, echo = (no_excess, 1.0) if all_of_it else TRUST
    setattr(Trust, "excess", excess)  # noqa: B010 - as the crawler has no such option
    setattr(copies, "ECHO", echo)  # noqa: B010


def no_excess(_: Trust, rows: Rows) -> NDArray[np.float32]:
    """Return that no body has more than its trust allows."""
    return np.zeros(len(rows), dtype=np.float32)


def generated(topics: list[str], caps: list[str], seeds: list[int]) -> Iterator[dict[str, Any]]:
    """Yield the settings of crawls of the synthetic web."""
    for topic, cap, seed in product(topics, caps, seeds):
        where = {"TRES_WEB": "synthetic", "TRES_WEB_SEED": seed, "TRES_RANDOM_SEED": seed}
        yield where | {"TRES_TOPIC": topic, "TRES_MAX_PER_DOMAIN": cap}


def recorded(data: Path, models: str) -> Iterator[dict[str, Any]]:
    """Yield the settings of crawls of the webs of real pages that `real_webs.py` reads."""
    for web, topics in TOPICS.items():
        for topic in topics:
            yield {
                "TRES_WEB": "recorded",
                "TRES_WEB_DATA": str(data / f"{web}.warc.gz"),
                "TRES_WEB_LABELS": str(data / f"{web}-{topic}.txt"),
                "TRES_TOPIC": topic,
                "TRES_SEED": SEEDS[web],
                "TRES_RANDOM_SEED": 1,
                "TRES_MAX_PER_DOMAIN": "none",
                "TRES_MODELS": models,
            }


def crawl(settings: dict[str, Any]) -> Seen:
    """Crawl once."""
    config = Config.from_settings(settings)
    simulation, seen = Simulation(World(config, user_agent="tres"), config), Seen()
    excess = Trust.excess

    def noted(self: Trust, rows: Rows) -> NDArray[np.float32]:
        found = excess(self, rows)
        seen.is_the_same &= not found.any()
        return found

    def look(_: int) -> None:
        if simulation.count.pages % LOOK == 0 and (holder := Shares(simulation.crawl).holder):
            seen.warnings += () if holder.reason else (holder.doubt or "large",)

    setattr(Trust, "excess", noted)  # noqa: B010 - of this crawl only
    simulation.run(look)
    setattr(Trust, "excess", excess)  # noqa: B010
    seen.is_the_same &= not simulation.crawl.counts["echoes"]
    seen.relevant, seen.pages = simulation.count.relevant, simulation.count.pages
    return seen
