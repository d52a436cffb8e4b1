"""Pages per second of `crawl tres` and of a plain breadth-first spider on the same two webs.

    python benchmarks/overhead.py [--pages 3000] [--runs 3] [--concurrency 16] [--judges 1 2]
        [--jobdir] [--against DIR] [--output FILE]

The webs: the synthetic one with about 50 links a page, and one of sentences with 20 links a page.
Both crawl a web through its proxy, in turns, without a delay. The plain spider has Scrapy's
defaults but FIFO queues in memory, and follows every link. The clock runs from page 100 to the last
page; processor time is that of the crawler's process and of the judges' in the same interval.
`--judges 1 2` crawls with one and with two processes that judge pages, in turns.

A further crawl of each web, all in one process, measures where the time of `tres` goes: the
processor time of its thread inside each part. The rest is Scrapy, other threads, and code without
a row. With `--jobdir` TRES also crawls with a JOBDIR, and with `--against DIR` the checkout in DIR
crawls too, in turns.
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
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from functools import reduce, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scrapy import Request, Spider, signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from scrapy.utils.asyncio import call_later
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.project import get_project_settings
from sentences import write_web

from tres_scrapy.extensions import session as learner
from tres_scrapy.topic.judge import Source
from tres_scrapy.topic.judge_process import Task

if TYPE_CHECKING:
    from tres_scrapy.topic.pack import Judged

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
# what is timed, by process and part: methods, and functions in the modules that call them
PARTS = {
    "judge: parse and text": ["tres_scrapy.topic.judge:read_page"],
    "judge: language": ["tres_scrapy.page.text:detect_language"],
    "judge: inference": ["tres_scrapy.topic.pack:Pack.judge"],
    "judge: fingerprint": ["tres_scrapy.topic.judge:fingerprint"],
    "judge: what links say": ["tres_scrapy.topic.judge:cues_of"],
    "crawler: near-duplicates": ["tres_scrapy.page.copies:Duplicates.add"],
    "crawler: store": ["tres_scrapy.frontier.store:SampleStore.add"],
    "crawler: tree": [
        "tres_scrapy.frontier.tree:TreeFrontier.add_experience",
        "tres_scrapy.frontier.tree:TreeFrontier.insert",
    ],
    "crawler: link model": [
        f"tres_scrapy.agent.link_learner:LinkLearner.{method}"
        for method in ("observe", "expand", "rate", "rate_again")
    ],
    "crawler: choice": ["tres_scrapy.agent.tres:TresPolicy.select"],
    "crawler: Double DQN": ["tres_scrapy.agent.q_learner:QLearner.learn"],
}
WEBS = {"50 links": "synthetic", "20 links, sentences": "corpus"}
DOCUMENTS = 20_000  # of the second web


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
        if isinstance(response, HtmlResponse):
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
            inside = threading.local()
            for part, places in PARTS.items():
                for place in places:
                    _time(place, part, self._parts, inside)

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
            clock, process, judge, parts = self._now()
            pages = self._pages - WARM_UP
            parts.subtract(self._start[3])
            self.result = {
                "pages_per_second": pages / (clock - self._start[0]),
                "cpu_ms": 1000 * (process - self._start[1]) / pages,
                "judge_ms": 1000 * (judge - self._start[2]) / pages,
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
        return [time.perf_counter(), time.process_time(), _of_children(), Counter(self._parts)]


def _of_children() -> float:
    """Return the processor time in seconds of the processes that this one has started."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += (int(fields[1]) == os.getpid()) * (int(fields[11]) + int(fields[12]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _time(place: str, part: str, parts: Counter[str], inside: threading.local) -> None:
    """Make a function add the processor time of its thread to its part, inner parts left out."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner = reduce(getattr, owners, importlib.import_module(module))
    function = getattr(owner, name)

    @wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        outer, inside.seconds = getattr(inside, "seconds", 0.0), 0.0
        start = time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            took = time.thread_time() - start
            parts[part] += took - inside.seconds
            inside.seconds = outer + took

    setattr(owner, name, timed)


def crawl(which: str, options: argparse.Namespace) -> None:
    """Run one crawl in this process and print what it measured."""
    os.environ["http_proxy"] = f"http://127.0.0.1:{options.port}"
    settings = get_project_settings() if which != "plain" else Settings()
    settings.setdict(COMMON | {"CONCURRENT_REQUESTS": options.concurrency}, priority="cmdline")
    settings["EXTENSIONS"] = {**settings.getdict("EXTENSIONS"), "__main__.Meter": 0}
    settings.setdict({"METER_PAGES": options.pages, "METER_PARTS": which == "parts"})
    process = CrawlerProcess(settings)
    with TemporaryDirectory() as directory:
        if which == "jobdir":
            settings["JOBDIR"] = str(Path(directory) / "job")
        if which == "plain":
            crawler = process.create_crawler(PlainSpider)
            process.crawl(crawler, seed=options.start)
        else:
            crawler = process.create_crawler("tres")
            output = Path(directory) / "items.jsonl"
            more = {} if options.judges == [1] else {"judges": options.judges[0]}
            process.crawl(crawler, topic=TOPIC, seed=options.start, output=str(output), **more)
        process.start()
    meter = crawler.get_extension(Meter)
    assert meter is not None
    print(json.dumps(meter.result))


def measured(
    which: str,
    kind: str,
    data: Path,
    options: argparse.Namespace,
    *,
    checkout: Path = PROJECT,
    judges: int = 1,
) -> dict[str, Any]:
    """Run one crawl of the package in `checkout` and its own web, each in a separate process."""
    web = [sys.executable, "-m", "tres_scrapy.cli.main", "web", "--json", kind, "--topic", TOPIC]
    web += ["--seed", str(options.seed), *(["--data", str(data)] if kind == "corpus" else [])]
    server = subprocess.Popen(  # noqa: S603 - our own command
        web, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    started = json.loads(server.stdout.readline())
    command = [sys.executable, __file__, "--crawl", which, "--port", str(started["port"])]
    command += ["--pages", str(options.pages), "--start", started["seeds"][0]]
    command += ["--concurrency", str(options.concurrency), "--judges", str(judges)]
    answer = subprocess.run(  # noqa: S603 - our own command
        command,
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    server.communicate()  # the server stops when its standard input closes
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return result | {"server_ms": 1000 * spent / options.pages}


def table(web: str, runs: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the medians of the crawls of a web as Markdown, and the ratios to plain Scrapy."""
    lines = [
        f"| {web} | pages/s | CPU ms a page: crawler | judge | both | server's "
        "| loop late, 99 % below, ms | at worst |",
        "|---|---|---|---|---|---|---|---|",
    ]
    names = ("cpu_ms", "judge_ms", "both_ms", "server_ms", "stall_99_ms", "stall_worst_ms")
    for which, results in runs.items():
        for result in results:
            result["both_ms"] = result["cpu_ms"] + result["judge_ms"]
        speed = statistics.median(result["pages_per_second"] for result in results)
        rest = [statistics.median(result[name] for result in results) for name in names]
        lines.append(f"| {which} | {speed:.1f} | " + " | ".join(f"{m:.2f}" for m in rest) + " |")
    for which in runs.keys() - {"plain"}:
        ratios = [
            ours["pages_per_second"] / plain["pages_per_second"]
            for ours, plain in zip(runs[which], runs["plain"], strict=True)
        ]
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        middle = statistics.median(ratios)
        lines += ["", f"Pages/s, {which} to plain, median {middle:.2f}; each pair: {each}"]
    return [*lines, ""]


def parts_table(webs: dict[str, dict[str, Any]]) -> list[str]:
    """Return the processor time of each part on each web as Markdown."""
    lines = [f"| part, CPU ms a page | {' | '.join(webs)} |", "|---|" + "---|" * len(webs)]
    rows: dict[str, list[float]] = {part: [] for part in PARTS}
    rest = []
    for result in webs.values():
        for part, times in rows.items():
            times.append(result["parts_ms"].get(part, 0.0))
        rest.append(result["cpu_ms"] - sum(result["parts_ms"].values()))
    for part, times in {**rows, "Scrapy and the rest": rest}.items():
        lines.append(f"| {part} | " + " | ".join(f"{ms:.2f}" for ms in times) + " |")
    return lines


def main() -> None:
    """Run the crawls in turn and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1, help="random seed of the webs")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--judges", type=int, nargs="+", default=[1])
    parser.add_argument("--jobdir", action="store_true", help="also crawl with a JOBDIR")
    parser.add_argument("--against", type=Path, help="another checkout, measured in the same turns")
    parser.add_argument("--output", type=Path, help="also write the figures to this file")
    parser.add_argument(
        "--crawl", choices=("tres", "plain", "parts", "jobdir"), help=argparse.SUPPRESS
    )
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--start", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        crawl(options.crawl, options)
        return
    who = {"plain": ("plain", PROJECT, 1)}
    for judges in options.judges:
        who["tres" if judges == 1 else f"tres, {judges} judges"] = ("tres", PROJECT, judges)
    if options.jobdir:
        who["tres, JOBDIR"] = ("jobdir", PROJECT, 1)
    if options.against is not None:
        who[options.against.name] = ("tres", options.against.resolve(), 1)
    lines, parts = [], {}
    with TemporaryDirectory() as directory:
        data = Path(directory) / "sentences.jsonl"
        write_web(data, TOPIC, DOCUMENTS, options.seed)
        for web, kind in WEBS.items():
            runs: dict[str, list[dict[str, Any]]] = {name: [] for name in who}
            for _ in range(options.runs):
                for name, (which, checkout, judges) in who.items():
                    result = measured(which, kind, data, options, checkout=checkout, judges=judges)
                    runs[name].append(result)
                    print(web, name, runs[name][-1], flush=True)
            parts[web] = measured("parts", kind, data, options)
            lines += table(web, runs)
    text = "\n".join(lines + parts_table(parts))
    print(text)
    if options.output is not None:
        options.output.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
