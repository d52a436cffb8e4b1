"""Crawls from keywords beside crawls with the labelled pack, on the synthetic web.

    python benchmarks/words_crawl.py [--pages 1000] [--webs 5] [--answers 0,20] [--no-scout]

With --no-scout, no random links of the seed are fetched first. Every crawl runs in one process
without HTTP, ten pages a domain. Answers come from the true labels: ten, as soon as 100 pages are
fetched, then ten more at each fit. Rows are appended to results/words_crawl.csv; an interrupted run
continues where it stopped. `benchmarks/words.py` writes them into results/words.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from topic import ROOT
from words import TOPICS

from tres_scrapy.bench.library import Library
from tres_scrapy.bench.simulation import World
from tres_scrapy.config.config import Config
from tres_scrapy.crawl import scout
from tres_scrapy.page.duplicate import fingerprint
from tres_scrapy.page.text import Page
from tres_scrapy.topic.pack import Judgement
from tres_scrapy.training.word_folder import THRESHOLD
from tres_scrapy.training.word_learner import WordLearner, open_topic
from tres_scrapy.webs.web import Web

RESULTS = Path(__file__).parent / "results"
LABELLED = "labelled pack"
FIRST, STEP = 100, 10  # pages before the first answers, answers at a time


class GrowingPack:
    """A pack of a topic that learns from each page it judges, and asks the web for answers."""

    threshold = THRESHOLD

    def __init__(self, learner: WordLearner, web: Web, answers: int) -> None:
        self.crawl: Crawl | None = None  # that it judges pages for
        self._learner = learner
        self._web = web
        self._answers = answers
        self._pages = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner.pack, name)

    def judge(self, pages: Sequence[Page]) -> list[Judgement]:
        """Judge pages by the model of the moment, then learn."""
        judged = self._learner.pack.judge(pages)
        self._describe()
        for page in pages:
            self._learner.keep(page, fingerprint(page), is_seed=self._pages == 0)
            self._pages += 1
        self._learner.learn()
        if self._pages >= FIRST and self._learner.answered < self._answers:
            urls = [sheet.url for sheet, _ in self._learner.questions(STEP)]
            self._learner.answer(dict(zip(urls, self._web.labels(urls), strict=True)))
        return judged

    def _describe(self) -> None:
        """Describe waiting links again if the model has changed, as the crawl's process does."""
        if self.crawl is not None:
            rows, store = self.crawl.revision.take(), self.crawl.store
            links = [(store.url(row), store.anchors[row]) for row in rows.tolist()]
            self.crawl.revision.note(self._learner.model, described=bool(links))
            if links:
                actions = self._learner.pack.action_features(*zip(*links, strict=True))
                self.crawl.revise(rows, actions)


def harvest(topic: str, seed: int, pages: int, answers: int | None) -> float:
    """Return the harvest rate of a crawl by the web's labels."""
    with TemporaryDirectory() as place:
        settings = {
            "TRES_TOPIC": topic,
            "TRES_WEB": "synthetic",
            "TRES_WEB_SEED": str(seed),
            "TRES_RANDOM_SEED": str(seed),
            "TRES_PAGES": str(pages),
            "TRES_MAX_PER_DOMAIN": "10",
            "TRES_MODELS": str(ROOT / "models"),
        }
        if answers is None:
            config = Config.from_settings(settings)
            return World(config, user_agent="tres").crawl(config).relevant / pages
        keywords, file = TOPICS[topic].words(), Path(place, "words.txt")
        file.write_text("\n".join([*keywords.words, *keywords.phrases]), encoding="utf-8")
        config = Config.from_settings(settings | {"TRES_KEYWORDS": str(file)})
        world = World(config, user_agent="tres")
        open_topic(topic, keywords, Path(place))
        learner = WordLearner(Path(place), topic, keywords, seed=seed)
        pack: Any = GrowingPack(learner, world.web, answers)
        world.pack = pack
        world.library = Library(world.web, pack, config.reading)
        return world.crawl(config).relevant / pages


def main() -> None:
    """Measure the missing crawls."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--webs", type=int, default=5)
    parser.add_argument("--answers", default="0,20")
    parser.add_argument("--topics", default="food,sports,hardware")
    parser.add_argument("--no-scout", action="store_true")
    options = parser.parse_args()
    if options.no_scout:
        scout.FIRST = 0  # type: ignore[misc]
    torch.set_num_threads(1)
    file = RESULTS / "words_crawl.csv"
    file.touch()
    with file.open(encoding="utf-8", newline="") as lines:
        done = {tuple(row[:4]): float(row[4]) for row in csv.reader(lines)}
    names = [*([] if options.no_scout else [LABELLED]), *options.answers.split(",")]
    for seed in range(1, options.webs + 1):
        for topic in options.topics.split(","):
            for name in names:
                called = f"{name}, no scout" if options.no_scout else name
                key = topic, called, str(seed), str(options.pages)
                if key in done:
                    continue
                answers = None if name == LABELLED else int(name)
                done[key] = harvest(topic, seed, options.pages, answers)
                with file.open("a", encoding="utf-8", newline="") as rows:
                    csv.writer(rows, lineterminator="\n").writerow([*key, f"{done[key]:.4f}"])
                print(*key, f"{done[key]:.4f}", flush=True)


if __name__ == "__main__":
    main()
