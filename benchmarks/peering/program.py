"""The crawlers that are compared, and how each is started."""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final
from venv import EnvBuilder

from comparing.result import code_version

from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.url.whole_file import sha256

HERE: Final = Path(__file__).parent
DIRECTORY: Final = "http://directory.test/"
IN_FLIGHT: Final = 16
DONE: Final = "installed"  # a file in an environment that is complete


@dataclass(frozen=True)
class Job:
    """A crawl to do: `limit` requests on a topic of the web in `data`, files in `folder`.

    `words` is the file of the topic's words, `environments` the folder of installed programs.
    """

    topic: str
    number: int
    limit: int
    data: Path
    labels: Path
    words: Path
    models: Path
    environments: Path
    folder: Path


@dataclass(frozen=True)
class Program(ABC):
    """A crawler: its name in the tables, and its settings in words."""

    name: str
    settings: str

    @abstractmethod
    def command(self, job: Job, proxy: str) -> list[str]:
        """Return the command that crawls."""

    @abstractmethod
    def version(self, job: Job) -> str:
        """Return what must be equal for a result to be kept."""

    def environment(self, job: Job) -> dict[str, str]:
        """Return environment variables beside http_proxy."""
        return {}


@dataclass(frozen=True)
class Ours(Program):
    """A policy of this repository in `scrapy crawl tres`."""

    policy: str = "tres"
    from_words: bool = True

    def command(self, job: Job, proxy: str) -> list[str]:
        """Return the command: the settings are those of a user, but for the web."""
        settings: dict[str, object] = {
            "TRES_WEB": "recorded",
            "TRES_WEB_DATA": job.data,
            "TRES_WEB_LABELS": job.labels,
            "TRES_WEB_PROXY": proxy,
            "TRES_SEED": DIRECTORY,
            "TRES_TOPIC": job.topic,
            "TRES_MODELS": job.models,
            "TRES_POLICY": self.policy,
            "TRES_PAGES": job.limit,
            "TRES_MAX_PER_DOMAIN": "none",
            "TRES_RANDOM_SEED": job.number,
            "TRES_OUTPUT": job.folder / "pages.jsonl",
            "CONCURRENT_REQUESTS": IN_FLIGHT,
        }
        if self.from_words:
            settings["TRES_KEYWORDS"] = job.words
        pairs = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        return [sys.executable, "-m", "scrapy", "crawl", "tres", *pairs]

    def environment(self, job: Job) -> dict[str, str]:
        """Return what Scrapy needs to find this project in any folder."""
        return {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "SCRAPY_SETTINGS_MODULE": "tres_scrapy.settings",
        }

    def version(self, job: Job) -> str:
        """Return hashes of the code, and of the pack if one is used."""
        pack = "" if self.from_words else sha256(job.models / job.topic / TOPIC_FILE)[:6]
        return f"{code_version()} {pack}".strip()


@dataclass(frozen=True)
class Scrapy(Program):
    """Scrapy alone, breadth-first."""

    def command(self, job: Job, proxy: str) -> list[str]:
        """Return the command."""
        spider = ["runspider", str(HERE / "breadth_first.py"), "-a", f"seed={DIRECTORY}"]
        return [sys.executable, "-m", "scrapy", *spider]

    def version(self, job: Job) -> str:
        """Return the version of Scrapy."""
        return version("scrapy")


@dataclass(frozen=True)
class Package(Program):
    """A published program in an environment of its own, run by one of our scripts."""

    package: str = ""
    script: str = ""
    strategy: str = ""

    def command(self, job: Job, proxy: str) -> list[str]:
        """Return the command: script, strategy, seed, words, requests."""
        python = job.environments / self.package / "bin" / "python"
        arguments = (self.strategy, DIRECTORY, job.words, job.limit)
        return [str(python), str(HERE / self.script), *map(str, arguments)]

    def environment(self, job: Job) -> dict[str, str]:
        """Return the folder in which the program keeps its files."""
        return {"CRAWL4_AI_BASE_DIRECTORY": str(job.folder)}

    def version(self, job: Job) -> str:
        """Return the version of the package."""
        return self.package.partition("==")[2]

    def install(self, environments: Path) -> None:
        """Create the environment and install the package with pip."""
        place = environments / self.package
        if not (place / DONE).exists():
            print(f"{self.package}: installing", flush=True)
            EnvBuilder(with_pip=True, clear=True).create(place)
            pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", self.package]
            subprocess.run(pip, check=True)  # noqa: S603 - our own command
            (place / DONE).touch()


CRAWL4AI: Final = "crawl4ai==0.9.5"
BYTECRAWL: Final = "bytecrawl==1.4.0"
OURS: Final = "policy={} of this repository in `scrapy crawl tres`; it judges pages as TRES does"
PROGRAMS: Final = (
    Ours("TRES, ten words", "as installed, `keywords=FILE`, 16 requests in flight"),
    Ours(
        "TRES, trained pack",
        "as installed, `topic=NAME`, 16 requests in flight",
        from_words=False,
    ),
    Package(
        "crawl4ai best-first",
        "`BestFirstCrawlingStrategy` with `KeywordRelevanceScorer` of the ten words, "
        "`include_external=True`, no limit of depth; HTTP strategy, `semaphore_count=16` (it "
        "fetches ten at a time), no delay",
        CRAWL4AI,
        "crawl4ai_crawl.py",
        "best-first",
    ),
    Package(
        "crawl4ai adaptive",
        "`AdaptiveCrawler` as installed (statistical, 20 pages, confidence 0.7), the query is the "
        "ten words. It stays on one site, so it gets the directory first, then each site that the "
        "directory lists, in that order; HTTP strategy",
        CRAWL4AI,
        "crawl4ai_crawl.py",
        "adaptive",
    ),
    Package(
        "bytecrawl Shark-Search",
        "`SharkSearch` of the ten words, `same_domain=False`, `delay=0`; it fetches one page at a "
        "time",
        BYTECRAWL,
        "bytecrawl_crawl.py",
        "shark",
    ),
    Package(
        "bytecrawl OPIC",
        "`OPIC`, `same_domain=False`, `delay=0`; it fetches one page at a time",
        BYTECRAWL,
        "bytecrawl_crawl.py",
        "opic",
    ),
    Ours("Shark-Search (paper)", OURS.format("rivals:SHARK_SEARCH"), "rivals:SHARK_SEARCH"),
    Ours("OPIC (paper)", OURS.format("rivals:OPIC"), "rivals:OPIC"),
    Scrapy(
        "Scrapy breadth-first",
        "every link followed; `DEPTH_PRIORITY=1`, FIFO queues, `ScrapyPriorityQueue`, 16 requests "
        "in flight, no delay, no cookies, no retries",
    ),
)
