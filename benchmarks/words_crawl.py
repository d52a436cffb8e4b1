"""Crawls from keywords beside crawls with the labelled pack, on offline webs.

    python benchmarks/words_crawl.py [--web synthetic] [--pages 1000] [--runs 5] [--answers 0,20]
        [--topics food,sports,hardware] [--data FOLDER] [--models FOLDER]

--data holds wiki.jsonl.xz for --web wiki, and university.warc.gz and university-course.txt for
--web university. Another run has another random seed, on the synthetic web another web too. Every
crawl runs in one process without HTTP, on the synthetic web with ten pages a domain. Answers come
from the true labels: ten, as soon as 100 pages are fetched, then ten more at each fit.

Variants that lost have been removed; their rows stay in results/words_crawl.csv.

The pack `course` is not shipped: `benchmarks/real_webs.py` trains it, and --models names its
folder. Rows are appended to results/words_crawl.csv; an interrupted run continues where it stopped.
`benchmarks/words.py` writes them into results/words.md.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from comparing.library import Library
from comparing.simulation import Simulation, World
from real_webs import hubs
from topic import ROOT
from words import TOPICS

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.lab.webs.recorded import RecordedWeb
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.text import Page
from tres_scrapy.topic.keyword_topic import THRESHOLD
from tres_scrapy.topic.pack import Judged
from tres_scrapy.topic.topic_folder import add_answers
from tres_scrapy.topic.topic_learner import TopicLearner, open_topic

RESULTS = Path(__file__).parent / "results"
LABELLED = "labelled pack"
FIRST, STEP = 100, 10  # pages before the first answers, answers at a time
KINDS = {"synthetic": "synthetic", "wiki": "corpus", "university": "recorded"}


class Run(NamedTuple):
    """A crawl: its web, topic, random seed and pages; `answers` is None with the labelled pack."""

    web: str
    topic: str
    seed: int
    pages: int
    answers: int | None


class GrowingPack:
    """A pack of a topic that learns from each page it judges, and asks the web for answers.

    With `relearns` it tells the crawl what it says of earlier pages now.
    """

    threshold = THRESHOLD

    def __init__(
        self, learner: TopicLearner, web: Web, answers: int, *, relearns: bool = True
    ) -> None:
        self.crawl: Crawl | None = None  # that it judges pages for
        self._learner = learner
        self._web = web
        self._answers = answers
        self._relearns = relearns
        self._pages = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner.pack, name)

    def judge(self, pages: Sequence[Page]) -> list[Judged]:
        """Judge pages by the model of the moment, then learn."""
        model = self._learner.model
        judged = [each._replace(model=model) for each in self._learner.pack.judge(pages)]
        self._describe()
        for page in pages:
            self._learner.keep(page, fingerprint(page), is_seed=self._pages == 0)
            self._pages += 1
        self._learner.learn()
        if self._pages >= FIRST and len(self._learner.known_answers) < self._answers:
            urls = [sheet.url for sheet, *_ in self._learner.questions(STEP)]
            answers = dict(zip(urls, self._web.labels(urls), strict=True))
            add_answers(self._learner.folder.answers, answers)
            self._learner.learn()
        return judged

    def _describe(self) -> None:
        """Describe waiting links again if the model has changed, as the crawl's process does."""
        if self.crawl is not None:
            if self._relearns and self.crawl.revision.asks():
                self.crawl.relearn(self._learner.again())
            rows, store = self.crawl.revision.take(), self.crawl.store
            links = [(store.url(row), store.anchors[row]) for row in rows.tolist()]
            self.crawl.revision.note(self._learner.model, described=bool(links))
            if links:
                actions = self._learner.pack.action_features(*zip(*links, strict=True))
                self.crawl.revise(rows, actions)


def harvest(run: Run, options: argparse.Namespace) -> float:
    """Return the harvest rate of a crawl by the web's labels."""
    topic, pages = run.topic, run.pages
    with TemporaryDirectory() as place:
        settings = settings_of(run, options)
        if run.answers is None:
            config = Config.from_settings(settings)
            return World(config, user_agent="tres").crawl(config).relevant / pages
        keywords, file = TOPICS[topic].words(), Path(place, "words.txt")
        file.write_text("\n".join([*keywords.words, *keywords.phrases]), encoding="utf-8")
        config = Config.from_settings(settings | {"TRES_KEYWORDS": str(file)})
        world = World(config, user_agent="tres")
        open_topic(topic, keywords, Path(place))
        learner = TopicLearner(Path(place), topic, keywords, seed=run.seed)
        pack: Any = GrowingPack(learner, world.web, run.answers)
        world.pack = pack
        world.library = Library(world.web, pack, config.reading)
        simulation = Simulation(world, config)
        pack.crawl = simulation.crawl
        return simulation.run().relevant / pages


def settings_of(run: Run, options: argparse.Namespace) -> dict[str, str]:
    """Return the settings of a crawl on its web."""
    settings = {
        "TRES_TOPIC": run.topic,
        "TRES_WEB": KINDS[run.web],
        "TRES_WEB_SEED": str(run.seed),
        "TRES_RANDOM_SEED": str(run.seed),
        "TRES_PAGES": str(run.pages),
        "TRES_MAX_PER_DOMAIN": "10" if run.web == "synthetic" else "none",
        "TRES_MODELS": str(options.models),
    }
    if run.web == "wiki":
        settings["TRES_WEB_DATA"] = str(options.data / "wiki.jsonl.xz")
    elif run.web == "university":
        archive, labels = (options.data / f"university{end}" for end in (".warc.gz", "-course.txt"))
        settings |= {"TRES_WEB_DATA": str(archive), "TRES_WEB_LABELS": str(labels)}
        settings["TRES_SEED"] = ",".join(hubs(RecordedWeb(archive, labels)))
    return settings


def main() -> None:
    """Measure the missing crawls."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--web", choices=list(KINDS), default="synthetic")
    parser.add_argument("--pages", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--answers", default="0,20")
    parser.add_argument("--topics", default="food,sports,hardware")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    options = parser.parse_args()
    torch.set_num_threads(1)
    file = RESULTS / "words_crawl.csv"
    file.touch()
    with file.open(encoding="utf-8", newline="") as lines:
        done = {tuple(row[:5]): float(row[5]) for row in csv.reader(lines)}
    names = [LABELLED, *options.answers.split(",")]
    for seed in range(1, options.runs + 1):
        for topic in options.topics.split(","):
            for name in names:
                key = options.web, topic, name, str(seed), str(options.pages)
                if key in done:
                    continue
                answers = None if name == LABELLED else int(name)
                run = Run(options.web, topic, seed, options.pages, answers)
                done[key] = harvest(run, options)
                with file.open("a", encoding="utf-8", newline="") as rows:
                    csv.writer(rows, lineterminator="\n").writerow([*key, f"{done[key]:.4f}"])
                print(*key, f"{done[key]:.4f}", flush=True)


if __name__ == "__main__":
    main()
