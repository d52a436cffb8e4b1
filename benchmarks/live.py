"""Cost of the live page: a watched crawl compared with the same crawl without the page.

    python benchmarks/live.py [--pages 600] [--pairs 3]

Both crawl the synthetic web, in turns. The watcher requests what a browser would request:
the state every 1.2 seconds and the figures every 3. There is no browser, which would use a core to
draw. Prints and writes results/live.md: pages per second and processor time of the watched crawl as
shares of those of the other crawl.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple
from urllib.parse import parse_qs, urlsplit

RESULTS = Path(__file__).parent / "results" / "live.md"
STATE, FIGURES = 1.2, 3.0  # seconds between requests, as in page.js


class Run(NamedTuple):
    """A crawl: pages per second, seconds of processor time, and requests to its live page."""

    rate: float
    seconds: float
    asked: int


class Watcher:
    """Request the live page of a crawl until the crawl ends."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self.asked = 0
        self._port = parts.port
        self._headers = {"X-Tres-Token": parse_qs(parts.query)["token"][0]}
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._watch, args=each)
            for each in (("state", STATE), ("figures", FIGURES))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the requests."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _watch(self, path: str, every: float) -> None:
        step = -1
        while not self._ended.wait(every):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
                connection.request("GET", f"/{path}?step={step}", headers=self._headers)
                answer = connection.getresponse()
                body = answer.read()
                connection.close()
            except OSError:  # the crawl ends
                continue
            self.asked += 1
            if answer.status == 200:
                step = json.loads(body)["step"]


def crawl(pages: int, *, watched: bool) -> Run:
    """Crawl a number of pages, watched or without a live page."""
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "scrapy", "crawl", "tres", "-a", "topic=food"]
        command += ["-a", "web=synthetic", "-a", f"pages={pages}", "-a", "report=0"]
        command += ["-a", f"output={folder}/pages.jsonl"] + ["-a", "dashboard=1"] * watched
        process = subprocess.Popen(  # noqa: S603 - our own crawl
            command, cwd=Path(__file__).parents[1], stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        said, asked = _watched(process.stderr)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
    found = re.search(r"'elapsed_time_seconds': ([\d.]+)", said)
    if process.returncode or found is None:
        raise RuntimeError(said[-2_000:])
    return Run(pages / float(found[1]), usage.ru_utime + usage.ru_stime, asked)


def _watched(log: IO[str]) -> tuple[str, int]:
    """Read a log to its end and watch the page that it names; return the log and the count."""
    lines, watcher = [], None
    for line in log:
        lines.append(line)
        if found := re.search(r"Live page: (\S+)", line):
            watcher = Watcher(found[1])
    if watcher is None:
        return "".join(lines), 0
    watcher.stop()
    return "".join(lines), watcher.asked


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=600)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    lines = [
        "# What the live page costs",
        "",
        f"`python benchmarks/live.py --pages {given.pages} --pairs {given.pairs}`:",
        "a crawl with the page and somebody who watches it, as shares of the same crawl without.",
        "The processor time is that of the crawl, its judge and its web. Pairs that differ more",
        "from each other than from 1 tell what else the machine did: the cost is less than that.",
        "",
        "| pair | questions | pages/s | processor time |",
        "|---|---|---|---|",
    ]
    shares = []
    for pair in range(given.pairs):
        order = (False, True) if pair % 2 == 0 else (True, False)
        runs = {watched: crawl(given.pages, watched=watched) for watched in order}
        with_, without = runs[True], runs[False]
        shares.append((with_.rate / without.rate, with_.seconds / without.seconds))
        lines.append(f"| {pair + 1} | {with_.asked} | {shares[-1][0]:.2f} | {shares[-1][1]:.2f} |")
        print(lines[-1], runs, flush=True)
    means = (fmean(each) for each in zip(*shares, strict=True))
    lines.append(f"| mean | | {' | '.join(f'{mean:.2f}' for mean in means)} |")
    RESULTS.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
