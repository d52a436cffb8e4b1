"""Pages per second of `crawl tres` and of a plain breadth-first spider on the same web.

    python benchmarks/overhead.py [--pages 3000] [--runs 3] [--concurrency 16] [--output FILE]

Both crawl the same synthetic web through its proxy, in turns, without a delay. The plain spider has
Scrapy's defaults but FIFO queues in memory, and follows every link. The clock runs from page 100
to the last page; processor time is that of the crawler's whole process in the same interval.

A further crawl, all in one process, measures where the time of `tres` goes: the processor time of
its thread inside each part. The rest is Scrapy, other threads, and code without a row.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import reduce, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.project import get_project_settings

from tres_scrapy.extensions import learner
from tres_scrapy.topic.judge import Judged, Source
from tres_scrapy.topic.judge_process import Task
from tres_scrapy.webs.synthetic import SyntheticWeb

PROJECT = Path(__file__).parents[1]
TOPIC = "food"
WARM_UP = 100  # pages
BEAT = 0.005  # seconds between checks of the delay of the event loop
COMMON = {
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "ROBOTSTXT_OBEY": False,
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "COOKIES_ENABLED": False,
}
# what is timed, by part: methods, and functions in the modules that call them
PARTS = {
    "parse and text": ["tres_scrapy.topic.judge:read_page"],
    "inference": ["tres_scrapy.topic.pack:Pack.judge"],
    "near-duplicates": [
        "tres_scrapy.topic.judge:fingerprint",
        "tres_scrapy.page.duplicate:Duplicates.add",
    ],
    "store": ["tres_scrapy.frontier.store:SampleStore.add"],
    "tree": [
        "tres_scrapy.frontier.tree:TreeFrontier.add_experience",
        "tres_scrapy.frontier.tree:TreeFrontier.insert",
    ],
    "choice": ["tres_scrapy.policies.tres:TresPolicy.select"],
    "Double DQN": ["tres_scrapy.agent.q_learner:QLearner.learn"],
}


class PlainSpider(Spider):
    """Follow every link of every page."""

    name = "plain"
    custom_settings = {  # noqa: RUF012 - declared so by Scrapy
        "DEPTH_PRIORITY": 1,
        "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
        "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    }

    def __init__(self, seed: str) -> None:
        super().__init__()
        self._seed = seed

    async def start(self) -> AsyncIterator[Any]:
        """Begin at the seed."""
        yield Request(self._seed)

    def parse(self, response: Response, **kwargs: Any) -> Iterator[Request]:
        """Follow every link."""
        assert isinstance(response, HtmlResponse)
        yield from response.follow_all(css="a[href]")


class Local:
    """Judge pages in this process."""

    def __init__(self, task: Task) -> None:
        self._judge = task.load()

    def __call__(self, sources: Sequence[Source]) -> list[Judged]:
        """Return the verdicts on a batch."""
        return self._judge(sources)

    def wait(self) -> None:
        """Do nothing: the judge is always ready."""

    def close(self) -> None:
        """Do nothing: there is no process to end."""


class Meter:
    """Record clock and processor time at the first and last counted page."""

    def __init__(self, crawler: Crawler, pages: int) -> None:
        self._crawler = crawler
        self._pages = pages
        self._seen = 0
        self._start: list[Any] = []
        self.result: dict[str, Any] = {}
        self._parts = Counter[str]()
        self._stalls: list[float] = []
        if crawler.settings.getbool("METER_PARTS"):
            setattr(learner, "Worker", Local)  # noqa: B010 - to time its parts too
            for part, places in PARTS.items():
                for place in places:
                    _time(place, part, self._parts)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Measure a crawl of METER_PAGES responses."""
        meter = cls(crawler, crawler.settings.getint("METER_PAGES"))
        crawler.signals.connect(meter.response_received, signal=signals.response_received)
        return meter

    def response_received(self) -> None:
        """Count a response; end the crawl with the last."""
        self._seen += 1
        if self._seen == WARM_UP:
            self._start = self._now()
            self._beat(time.perf_counter())
        elif self._seen == self._pages:
            clock, process, parts = self._now()
            pages = self._pages - WARM_UP
            parts.subtract(self._start[2])
            self.result = {
                "pages_per_second": pages / (clock - self._start[0]),
                "cpu_ms": 1000 * (process - self._start[1]) / pages,
                "stall_99_ms": 1000 * float(np.percentile(self._stalls, 99)),
                "stall_worst_ms": 1000 * max(self._stalls),
                "parts_ms": {part: 1000 * seconds / pages for part, seconds in parts.items()},
            }
            deferred_from_coro(self._crawler.engine.close_spider_async(reason="measured"))

    def _beat(self, due: float) -> None:
        """Record how late the event loop is, every few milliseconds."""
        now = time.perf_counter()
        self._stalls.append(now - due)
        call_later(BEAT, self._beat, now + BEAT)

    def _now(self) -> list[Any]:
        return [time.perf_counter(), time.process_time(), Counter(self._parts)]


def _time(place: str, part: str, parts: Counter[str]) -> None:
    """Make a function add the processor time of its thread to its part."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    function = getattr(owner, name)

    @wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            parts[part] += time.thread_time() - start  # type: ignore[assignment]

    setattr(owner, name, timed)


def crawl(which: str, port: int, options: argparse.Namespace) -> None:
    """Run one crawl in this process and print what it measured."""
    os.environ["http_proxy"] = f"http://127.0.0.1:{port}"
    settings = get_project_settings() if which != "plain" else Settings()
    settings.setdict(COMMON | {"CONCURRENT_REQUESTS": options.concurrency}, priority="cmdline")
    settings["EXTENSIONS"] = {**settings.getdict("EXTENSIONS"), "__main__.Meter": 0}
    settings.setdict({"METER_PAGES": options.pages, "METER_PARTS": which == "parts"})
    process = CrawlerProcess(settings)
    seeds = SyntheticWeb(TOPIC, seed=options.seed).seeds
    with TemporaryDirectory() as directory:
        if which == "plain":
            crawler = process.create_crawler(PlainSpider)
            process.crawl(crawler, seed=seeds[0])
        else:
            crawler = process.create_crawler("tres")
            output = Path(directory) / "items.jsonl"
            process.crawl(crawler, topic=TOPIC, seed=seeds[0], output=str(output))
        process.start()
    meter = crawler.get_extension(Meter)
    assert meter is not None
    print(json.dumps(meter.result))


def measured(which: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run one crawl and its own web, each in a separate process."""
    web = [sys.executable, "-m", "tres_scrapy.webs.server", "synthetic", "--topic", TOPIC]
    web += ["--seed", str(options.seed)]
    server = subprocess.Popen(  # noqa: S603 - our own command
        web, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    port = json.loads(server.stdout.readline())["port"]
    command = [sys.executable, __file__, "--crawl", which, "--port", str(port)]
    command += ["--pages", str(options.pages), "--seed", str(options.seed)]
    command += ["--concurrency", str(options.concurrency)]
    answer = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, check=True, text=True)  # noqa: S603
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    server.communicate()  # the server stops when its standard input closes
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result | {"server_ms": 1000 * spent / options.pages}


def report(runs: dict[str, list[dict[str, Any]]], parts: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    lines = [
        "| crawl | pages/s | CPU ms a page | server's | loop late, 99 % below, ms | at worst |",
        "|---|---|---|---|---|---|",
    ]
    names = ("pages_per_second", "cpu_ms", "server_ms", "stall_99_ms", "stall_worst_ms")
    for which, results in runs.items():
        means = [statistics.mean(result[name] for result in results) for name in names]
        lines.append(
            f"| {which} | {means[0]:.1f} | " + " | ".join(f"{m:.2f}" for m in means[1:]) + " |"
        )
    ratios = [
        tres["pages_per_second"] / plain["pages_per_second"]
        for tres, plain in zip(runs["tres"], runs["plain"], strict=True)
    ]
    lines += ["", "Ratio, each pair: " + ", ".join(f"{ratio:.2f}" for ratio in ratios), ""]
    lines += ["| part of tres | CPU ms a page |", "|---|---|"]
    left = parts["cpu_ms"] - sum(parts["parts_ms"].values())
    rows = parts["parts_ms"] | {"Scrapy and the rest": left}
    lines += [f"| {part} | {ms:.2f} |" for part, ms in rows.items()]
    return "\n".join(lines)


def main() -> None:
    """Run the crawls in turn and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="random seed of the web")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--output", type=Path, help="also write the figures to this file")
    parser.add_argument("--crawl", choices=("tres", "plain", "parts"), help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        crawl(options.crawl, options.port, options)
        return
    runs: dict[str, list[dict[str, Any]]] = {"plain": [], "tres": []}
    for _ in range(options.runs):
        for which, results in runs.items():
            results.append(measured(which, options))
            print(which, results[-1], flush=True)
    text = report(runs, measured("parts", options))
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
