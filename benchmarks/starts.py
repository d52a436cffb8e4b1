"""Crawls from ten words, each from one start: what one of them finds at worst, not on average.

    python benchmarks/starts.py --data FOLDER [--web university] [--topics course faculty]
        [--words FOLDER] [--seeds 1 2] [--pages 200] [--frozen] [--halves 6]

Each of six pages of the universities with most links to other hosts is the start of a crawl; the
web `sites` has one start, the directory. A crawl is simulated in one process, one request at a
time. --words holds TOPIC.txt, the keywords of each topic. With --frozen, what earlier pages taught
stays as it was when they were fetched. With --halves, each crawl is made on so many other webs: a
random half of the hosts that the seeds of `sites` are on has no links to it (redirects remain).

Printed for each crawl: relevant pages among the first 50, 100, 200 and 500, by the labels of the
web; average precision and F1 of the last model on the pages that the crawl has kept, which differ
from crawl to crawl. For each topic: the sums, the lowest, and the means of the judge over the
crawls that found a relevant page.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator, Set
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
import torch
from comparing.library import Fetched, Library
from comparing.simulation import Simulation, World
from judge import figures
from real_webs import DIRECTORY, hubs
from words_crawl import GrowingPack

from tres_scrapy.agent.policy_inputs import Kind
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.lab.webs.recorded import RecordedWeb
from tres_scrapy.lab.webs.web import Answer, Web
from tres_scrapy.page.text import Page
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_topic import THRESHOLD, TopicFit
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_learner import TopicLearner, open_topic

MARKS = (50, 100, 200, 500)
WORDS = Path(__file__).parent / "university_keywords"
PACK = "food"  # a simulation needs one; the topic from keywords takes its place


def starts_of(options: argparse.Namespace, topic: str) -> list[str]:
    """Return the starts of a web."""
    if options.web == "sites":
        return [DIRECTORY]
    archive, labels = (
        options.data / f"{options.web}{end}" for end in (".warc.gz", f"-{topic}.txt")
    )
    return list(hubs(RecordedWeb(archive, labels)))


class Found(NamedTuple):
    """What a crawl has found at each of the MARKS, and how good its last model is.

    The average precision and F1 are nan if no page kept is relevant.
    """

    pages: list[int]
    precision: float
    f1: float

    def __str__(self) -> str:
        return f"{self.pages} AP {self.precision:.2f} F1 {self.f1:.2f}"


class Part(Library):
    """A library of a web in which no link leads to `closed` hosts."""

    def __init__(self, web: Web, pack: Pack, limits: ReadingLimits, closed: Set[str]) -> None:
        super().__init__(web, pack, limits)
        self._closed = closed

    def _read(self, answer: Answer, page: Page, kind: Kind) -> Fetched:
        kept = [
            place
            for place, link in enumerate(page.links)
            if urlsplit(link.url).netloc not in self._closed
        ]
        part = replace(
            page,
            links=tuple(page.links[place] for place in kept),
            places=tuple(page.places[place] for place in kept if page.places),
            contexts=tuple(page.contexts[place] for place in kept if page.contexts),
        )
        return super()._read(answer, part, kind)


def closed_hosts(options: argparse.Namespace, half: int) -> frozenset[str]:
    """Return the hosts that a half of the web `sites` is without; 0 is the whole web."""
    if not half:
        return frozenset()
    seeds = (options.data / "sites-seeds.txt").read_text(encoding="utf-8").split()
    hosts = sorted({urlsplit(seed).netloc for seed in seeds})
    return frozenset(random.Random(half).sample(hosts, len(hosts) // 2))


def crawl(options: argparse.Namespace, topic: str, start: str, seed: int, half: int) -> Found:
    """Return what a crawl found among the first MARKS, and its model."""
    words, labels = (
        options.words / f"{topic}.txt",
        options.data / f"{options.web}-{topic}.txt",
    )
    config = Config.from_settings(
        {
            "TRES_TOPIC": PACK,
            "TRES_KEYWORDS": str(words),
            "TRES_SEED": start,
            "TRES_PAGES": str(options.pages),
            "TRES_RANDOM_SEED": str(seed),
            "TRES_WEB": "recorded",
            "TRES_WEB_DATA": str(options.data / f"{options.web}.warc.gz"),
            "TRES_WEB_LABELS": str(labels),
        }
    )
    keywords = KeywordSet.read(words)
    world = World(config, user_agent="tres")
    with TemporaryDirectory() as folder:
        open_topic(topic, keywords, Path(folder))
        learner = TopicLearner(Path(folder), topic, keywords, seed=seed)
        pack: Any = GrowingPack(learner, world.web, answers=0, relearns=not options.frozen)
        closed = closed_hosts(options, half)
        world.library = Part(world.web, pack, config.reading, closed)
        world.pack = pack
        simulation = Simulation(world, config)
        pack.crawl = simulation.crawl
        simulation.run()
        learned = [page for _, _, page in learner.folder.read_pages()]
        judged = TopicFit.of(learner.pack).judge(learned)
    good = [bool(each) for each in world.web.labels(simulation.order)]
    found = [sum(good[:mark]) for mark in MARKS if mark <= options.pages]
    true = np.array(world.web.labels([page.url for page in learned]), dtype=bool)
    if not true.any():
        return Found(found, math.nan, math.nan)
    precision, _, f1 = figures(true, judged, THRESHOLD)
    return Found(found, precision, f1)


def lines(options: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each crawl, and one for each topic."""
    for topic in options.topics:
        found = []
        for half in range(1, options.halves + 1) if options.halves else [0]:
            for seed in options.seeds:
                for start in starts_of(options, topic):
                    found.append(crawl(options, topic, start, seed, half))
                    where = f"{start}, half {half}" if half else start
                    yield f"{topic} {seed} {where} {found[-1]}"
        sums = [sum(each) for each in zip(*(each.pages for each in found), strict=True)]
        judge = np.nanmean([(each.precision, each.f1) for each in found], axis=0)
        lowest = min(each.pages[-1] for each in found)
        yield f"{topic}: {sums}, lowest {lowest}, AP {judge[0]:.3f}, F1 {judge[1]:.3f}"


def main() -> None:
    """Run the crawls and print each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--web", choices=("university", "sites"), default="university")
    parser.add_argument("--topics", nargs="+", default=["course", "faculty", "project", "student"])
    parser.add_argument("--words", type=Path, default=WORDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--halves", type=int, default=0, help="of the hosts of sites")
    parser.add_argument("--frozen", action="store_true", help="keep the lessons of earlier pages")
    options = parser.parse_args()
    if options.halves and options.web != "sites":
        parser.error("--halves needs --web sites")
    torch.set_num_threads(1)
    for line in lines(options):
        print(line, flush=True)


if __name__ == "__main__":
    main()
