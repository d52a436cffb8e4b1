"""Where the files of a crawl go: all beside one another, under one name."""

from __future__ import annotations

from pathlib import Path

from scrapy.crawler import Crawler

from tres_scrapy.config.config import Config
from tres_scrapy.extensions.job import now
from tres_scrapy.extensions.learner import Learner


def output_path(crawler: Crawler) -> Path:
    """Return the JSON lines file of a crawl; one in JOBDIR keeps the name that it began with."""
    config = Config.of(crawler.settings)
    learner = crawler.get_extension(Learner)
    started = now() if learner is None else learner.started
    return config.output.file or Path("output", f"{config.topic}-{started}.jsonl")


def beside(path: Path, ending: str) -> Path:
    """Return the name of another file of the same crawl: food.jsonl has food.warc.gz beside it."""
    return path.with_name(path.name.removesuffix(".jsonl") + ending)
