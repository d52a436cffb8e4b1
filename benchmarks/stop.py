"""What a rule of `stop` saves and loses, on recorded webs.

    python benchmarks/stop.py --data FOLDER [--webs sites university] [--topics food ...]
        [--pages 4000] [--seeds 1] [--output FILE]

Each crawl runs to its end without a rule, judged by the true labels, so that only the rule is
measured. Then each rule is applied to its past: where it would have stopped, what share of the
fetches that saves, and what share of the relevant pages the rest would have found. "in" is how
often the number of relevant pages that came later lay in the interval, at every 100th fetch of the
first half. The data folder holds WEB.warc.gz and WEB-TOPIC.txt, the relevant URLs of a topic.

A curve was measured on the same crawls: the yield of the last half of the fetches, falling
exponentially (Poisson regression), to its end. It lost, and is not part of TRES.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

from topic import ROOT

from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import StopRule
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.crawl.outlook import Left
from tres_scrapy.lab.library import Fetched
from tres_scrapy.lab.simulation import Simulation, World
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Judged
from tres_scrapy.topic.topic_learner import open_topic

RULES = ("coverage:0.9", "coverage:0.95", "yield:0.02", "yield:0.01")
SURE, NOT = 0.95, 0.02  # P(relevant) by the labels
LISTS = ROOT / "benchmarks" / "university_keywords"
WORDS = {
    "food": "drink wine cheese spicy chefs meat snacks food recipe cooking",
    "sports": "sport football baseball hockey team league championship player coach match",
    "hardware": "electronics arduino circuit microcontroller sensor soldering voltage computer "
    "keyboard monitor",
    "nature": "nature wildlife birds species habitat ecology plants insects forest animals",
}
TOPICS = {
    "sites": ("sports", "hardware", "nature", "course", "food"),
    "university": ("student", "faculty", "course", "project"),
}
SEEDS = {"sites": "http://directory.test/"}


class Moment(NamedTuple):
    """The relevant pages found after a fetch, and what was expected then."""

    found: int
    left: Left | None
    met: tuple[bool, ...]  # the rules


class Labelled(Simulation):
    """A crawl whose judge is never wrong; `moments` has one for each fetch."""

    def __init__(self, world: World, config: Config) -> None:
        super().__init__(world, config)
        self.moments: list[Moment] = []
        self._rules = [StopRule.parse(rule) for rule in RULES]

    def _book(self, row: int, fetched: Fetched) -> Booking:
        judged = fetched.judged
        if fetched.failure is None and isinstance(judged, Judged):
            is_relevant = bool(self._world.web.labels([self.crawl.store.url(row)])[0])
            judged = judged._replace(probability=SURE if is_relevant else NOT)
            fetched = replace(fetched, judged=judged)
        booking = super()._book(row, fetched)
        outlook = self.crawl.outlook
        met = tuple(outlook.meets(rule) for rule in self._rules)
        self.moments.append(Moment(outlook.relevant, outlook.left, met))
        return booking


def crawl(web: str, topic: str, options: argparse.Namespace, seed: int) -> list[Moment]:
    """Return the moments of a crawl without a rule."""
    with TemporaryDirectory() as folder:
        words = WORDS.get(topic, "") or (LISTS / f"{topic}.txt").read_text(encoding="utf-8")
        lines = words.splitlines() if "\n" in words else words.split()
        place = Path(folder, "a.topic")
        open_topic(topic, KeywordSet.parse(lines), place)
        (place / "pack").rename(Path(folder, topic))
        config = Config.from_settings(
            {
                "TRES_TOPIC": topic,
                "TRES_MODELS": folder,
                "TRES_WEB": "recorded",
                "TRES_WEB_DATA": options.data / f"{web}.warc.gz",
                "TRES_WEB_LABELS": options.data / f"{web}-{topic}.txt",
                "TRES_SEED": SEEDS.get(web),
                "TRES_PAGES": options.pages,
                "TRES_RANDOM_SEED": seed,
            }
        )
        simulation = Labelled(World(config, user_agent="tres"), config)
        simulation.run()
    return simulation.moments


def rows(name: str, moments: list[Moment]) -> Iterator[tuple[str, int, float, float]]:
    """Yield each rule, where it stops, and the shares that it saves and loses."""
    count, total = len(moments), max(1, moments[-1].found)
    for number, rule in enumerate(RULES):
        end = next((n for n, each in enumerate(moments, 1) if each.met[number]), count)
        yield rule, end, 1 - end / count, 1 - moments[end - 1].found / total


def within(moments: list[Moment]) -> float:
    """Return how often what came later lay in the interval."""
    total = moments[-1].found
    looks = [each for each in moments[99 : len(moments) // 2 : 100] if each.left is not None]
    hits = [
        each.left.low - 0.5 <= total - each.found <= each.left.high + 0.5
        for each in looks
        if each.left
    ]
    return mean(hits) if hits else 0.0


def main() -> None:
    """Crawl, apply the rules, and print a table for each web."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--webs", nargs="+", default=list(TOPICS))
    parser.add_argument("--topics", nargs="+")
    parser.add_argument("--pages", type=int, default=4_000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    said: dict[str, list[tuple[float, float]]] = {rule: [] for rule in RULES}
    print("| web | topic | seed | fetches | relevant | in | rule | stops at | saved | lost |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for web in options.webs:
        for topic in options.topics or TOPICS[web]:
            for seed in options.seeds:
                moments = crawl(web, topic, options, seed)
                about = f"| {web} | {topic} | {seed} | {len(moments):,} | {moments[-1].found:,} "
                for rule, end, saved, lost in rows(topic, moments):
                    said[rule].append((saved, lost))
                    print(
                        f"{about}| {within(moments):.0%} | `{rule}` | {end:,} | {saved:.0%} | "
                        f"{lost:.1%} |",
                        flush=True,
                    )
    for rule, each in said.items():
        saved, lost = (mean(column) for column in zip(*each, strict=True))
        print(f"{rule}: saved {saved:.0%}, lost {lost:.1%} in the mean of {len(each)} crawls")


if __name__ == "__main__":
    main()
