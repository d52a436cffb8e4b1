"""Politeness of a crawl and its cost, measured by the server.

    python benchmarks/politeness.py [--seconds 60] [--delay 1] [--output FILE]

A proxy serves 100 hosts that link to one another without end. 30 are slow, 10 ask for twice the
delay in robots.txt, 10 forbid half of their pages. `crawl tres` crawls them with one request per
host at a time, then with AutoThrottle, then only four hosts, to measure the cost of waiting.
Lateness is the time between the moment a request to a host is allowed and the request.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

from tres_scrapy.downloader.request import LEASE
from tres_scrapy.scheduler import TreeFrontierScheduler

PROJECT = Path(__file__).parents[1]
LINKS = 20
PLACES = ("open", "closed")
JITTER = 0.05  # seconds by which the gap between requests may shrink on the way
SETTLING = 20.0  # seconds for finding hosts and warming up, before measuring
TEXT = "a recipe of onions, butter and soup, chopped and baked with flour in the oven " * 8


class Fetch(NamedTuple):
    """A fetch as seen by the server."""

    host: int
    path: str
    start: float
    end: float


@dataclass
class Hosts:
    """A web of hosts; it records when each fetch began and ended."""

    count: int
    delay: float
    slow: int = 0  # the first
    asking: int = 0  # the next ask for twice the delay
    forbidding: int = 0  # the last forbid /closed/
    latency: float = 3.0
    fetches: list[Fetch] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        while line := await reader.readline():
            parts = urlsplit(line.split()[1].decode())
            while (await reader.readline()).strip():
                pass
            start = time.monotonic()
            host = int((parts.hostname or "").removesuffix(".test").removeprefix("h"))
            is_robots = parts.path == "/robots.txt"
            if host < self.slow and not is_robots:
                await asyncio.sleep(self.latency)
            body = (self._robots(host) if is_robots else self._page()).encode()
            kind = "text/plain" if is_robots else "text/html"
            head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
            if not is_robots:
                self.fetches.append(Fetch(host, parts.path, start, time.monotonic()))
            try:
                writer.write(head.encode() + body)
                await writer.drain()
            except ConnectionError:
                return
        writer.close()

    def delay_of(self, host: int) -> float:
        """Return the seconds between two fetches that a host asks for."""
        return self.delay * (2 if self.slow <= host < self.slow + self.asking else 1)

    def forbids(self, host: int, path: str) -> bool:
        """Return whether robots.txt of a host forbids a path."""
        return host >= self.count - self.forbidding and path.startswith("/closed/")

    def _robots(self, host: int) -> str:
        if self.slow <= host < self.slow + self.asking:
            return f"User-agent: *\nCrawl-delay: {2 * self.delay:g}\n"
        if host >= self.count - self.forbidding:
            return "User-agent: *\nDisallow: /closed/\n"
        return ""

    def _page(self) -> str:
        links = "".join(
            f'<a href="http://h{host}.test/{random.choice(PLACES)}/'
            f'{random.getrandbits(40):x}">soup</a> '
            for host in random.sample(range(self.count), min(LINKS, self.count))
        )
        words = " ".join(random.sample(TEXT.split(), 40))
        return f"<title>Soup</title><p>{words} {random.getrandbits(60):x}</p><p>{links}</p>"


async def crawled(hosts: Hosts, seconds: float, *settings: str) -> dict[str, Any]:
    """Crawl the hosts; return the decisions and the processor time of the crawler."""
    server = await asyncio.start_server(hosts.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    arguments = ["--crawl", "--seconds", str(seconds), "--delay", str(hosts.delay), *settings]
    environment = {**os.environ, "http_proxy": f"http://127.0.0.1:{port}"}
    crawler = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, *arguments),
        cwd=PROJECT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    answer, _ = await crawler.communicate()
    server.close()
    result: dict[str, Any] = json.loads(answer.splitlines()[-1])
    return result


def crawl(options: argparse.Namespace) -> None:
    """Crawl in this process for some seconds; print its decisions and its processor time."""
    decided: dict[str, float] = {}
    choose = TreeFrontierScheduler.next_request

    def next_request(self: TreeFrontierScheduler) -> Any:
        request = choose(self)
        if request is not None and LEASE in request.meta:
            decided.setdefault(urlsplit(request.url).path, time.monotonic())
        return request

    setattr(TreeFrontierScheduler, "next_request", next_request)  # noqa: B010 - to observe it
    settings = get_project_settings()
    settings.setdict(
        {
            "DOWNLOAD_DELAY": options.delay,
            "CONCURRENT_REQUESTS": 64,
            "CLOSESPIDER_TIMEOUT": SETTLING + options.seconds,
            "LOG_LEVEL": "ERROR",
            "AUTOTHROTTLE_ENABLED": options.autothrottle,
            "AUTOTHROTTLE_START_DELAY": options.delay,
        },
        priority="cmdline",
    )
    seed = "http://h0.test/open/0"
    spent: list[float] = []
    timers = [threading.Timer(SETTLING + at, lambda: spent.append(cpu())) for at in options.watch]
    for timer in timers:
        timer.start()
    process = CrawlerProcess(settings)
    with TemporaryDirectory() as directory:
        process.crawl("tres", topic="food", seed=seed, output=str(Path(directory) / "items.jsonl"))
        process.start()
    share = (spent[1] - spent[0]) / (options.watch[1] - options.watch[0])
    print(json.dumps({"decided": decided, "cpu_share": share}))


def cpu() -> float:
    """Return the processor seconds of this process and its children."""
    seconds = time.process_time()
    for child in Path("/proc/self/task").glob("*/children"):
        for pid in child.read_text(encoding="ascii").split():
            fields = (
                Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            )
            seconds += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def findings(hosts: Hosts, crawler: dict[str, Any], seconds: float) -> dict[str, float]:
    """Compare the fetches that the server recorded with the rules."""
    by_host: dict[int, list[Fetch]] = defaultdict(list)
    for fetch in hosts.fetches:
        by_host[fetch.host].append(fetch)
    begin = min(fetch.start for fetch in hosts.fetches) + SETTLING
    end = begin + seconds - 2 * hosts.latency
    late, early, made, allowed, at_once = [], [0.0], 0, 0.0, 0
    for host, fetches in by_host.items():
        delay = hosts.delay_of(host)
        made += sum(begin <= fetch.start < end for fetch in fetches)
        allowed += (end - begin) / max(delay, hosts.latency if host < hosts.slow else 0)
        for one, two in pairwise(fetches):
            early.append(one.start + delay - two.start)
            at_once += two.start < one.end
            if begin <= two.start < end:
                late.append(two.start - max(one.start + delay, one.end))
    ages = [
        fetch.start - crawler["decided"][fetch.path]
        for fetch in hosts.fetches
        if begin <= fetch.start < end
    ]
    return {
        "hosts fetched from": len(by_host),
        "fetches": made,
        "share of what the delays allow": made / allowed,
        "hits faster than the delay": sum(seconds > JITTER for seconds in early),
        "the fastest is early by, s": max(early),
        "hits beside another of the host": at_once,
        "hits that robots.txt forbids": sum(hosts.forbids(f.host, f.path) for f in hosts.fetches),
        "age of a decision, median, s": statistics.median(ages),
        "lateness of a host, median, s": statistics.median(late),
        "lateness, 99 % below, s": statistics.quantiles(late, n=100)[98],
        "lateness, at worst, s": max(late),
        "share of a core": crawler["cpu_share"],
    }


def main() -> None:
    """Crawl three times and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--delay", type=float, default=1)
    parser.add_argument("--output", type=Path, help="also write the findings to this file")
    parser.add_argument("--autothrottle", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--crawl", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.crawl:
        options.watch = 0, options.seconds - 2
        crawl(options)
        return
    many, again = (Hosts(100, options.delay, slow=30, asking=10, forbidding=10) for _ in range(2))
    runs: dict[str, tuple[Hosts, list[str]]] = {
        "100 hosts": (many, []),
        "with AutoThrottle": (again, ["--autothrottle"]),
        "4 hosts, ten times the delay": (Hosts(4, 10 * options.delay), []),
    }
    columns = {}
    for name, (hosts, arguments) in runs.items():
        crawler = asyncio.run(crawled(hosts, options.seconds, *arguments))
        columns[name] = findings(hosts, crawler, options.seconds)
        print(name, columns[name], flush=True)
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for figure in next(iter(columns.values())):
        cells = [f"{column[figure]:.3g}" for column in columns.values()]
        lines.append(f"| {figure} | " + " | ".join(cells) + " |")
    print("\n".join(lines))
    if options.output is not None:
        options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
