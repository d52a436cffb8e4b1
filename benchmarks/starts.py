"""Crawls from ten words, each from one start: what one of them finds at worst, not on average.

    python benchmarks/starts.py --data FOLDER [--web university] [--topics course faculty]
        [--words FOLDER] [--seeds 1 2] [--pages 200] [--frozen]

Each of six pages of the universities with most links to other hosts is the start of a crawl; the
web `sites` has one start, the directory. A crawl is simulated in one process, one request at a
time. --words holds TOPIC.txt, the keywords of each topic. With --frozen, what earlier pages taught
stays as it was when they were fetched. Printed for each crawl: relevant pages among the first 50,
100, 200 and 500, by the labels of the web, and for each topic the sums.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from comparing.library import Library
from comparing.simulation import Simulation, World
from real_webs import DIRECTORY, hubs
from words_crawl import GrowingPack

from tres_scrapy.config.config import Config
from tres_scrapy.lab.webs.recorded import RecordedWeb
from tres_scrapy.topic.keyword import KeywordSet
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


def crawl(options: argparse.Namespace, topic: str, start: str, seed: int) -> list[int]:
    """Return how many relevant pages a crawl found among the first MARKS."""
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
        pack: Any = GrowingPack(
            TopicLearner(Path(folder), topic, keywords, seed=seed),
            world.web,
            answers=0,
            relearns=not options.frozen,
        )
        world.library = Library(world.web, pack, config.reading)
        world.pack = pack
        simulation = Simulation(world, config)
        pack.crawl = simulation.crawl
        simulation.run()
    good = [bool(each) for each in world.web.labels(simulation.order)]
    return [sum(good[:mark]) for mark in MARKS if mark <= options.pages]


def lines(options: argparse.Namespace) -> Iterator[str]:
    """Yield a line for each crawl, and one for each topic."""
    for topic in options.topics:
        found = []
        for seed in options.seeds:
            for start in starts_of(options, topic):
                found.append(crawl(options, topic, start, seed))
                yield f"{topic} {seed} {start} {found[-1]}"
        sums = [sum(each) for each in zip(*found, strict=True)]
        yield f"{topic}: {sums}, lowest {min(each[-1] for each in found)}"


def main() -> None:
    """Run the crawls and print each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--web", choices=("university", "sites"), default="university")
    parser.add_argument("--topics", nargs="+", default=["course", "faculty", "project", "student"])
    parser.add_argument("--words", type=Path, default=WORDS)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--frozen", action="store_true", help="keep the lessons of earlier pages")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for line in lines(options):
        print(line, flush=True)


if __name__ == "__main__":
    main()
