"""Processor time, memory and bytes of a crawl in 1, 2, 4 and 8 shards on this machine.

    python benchmarks/cluster.py [--shards 1 2 4 8] [--pages 3000] [--runs 1] [--slow SECONDS]
        [--requests 16] [--topic food] [--max 10] [--first 200] [--output FILE]

Another process serves the synthetic web. `tres cluster crawl` fetches it; the processor time of all
its processes is read from /proc twice a second. Start-up and the `--first` pages are left out. Few
pages are under way at first (docs/cluster.md), so pages/s grow until many thousands are fetched.
Harvest rate and domains are the web's own count.
With `--slow`, each answer takes so many seconds: then pages/s should grow with the shards until
the processors are busy.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from cluster_kill import ancestors
from kill import PROJECT, TOPIC, domains, fetches, harvest, served

from tres_scrapy.lab.webs.synthetic import SyntheticWeb

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PARTS = {  # by what a command line contains
    "ray::ShardActor": "shards",
    "topic.judge_process": "judges",
    "ray::LearnerActor": "learner",
    "ray::CoordinatorActor": "coordinator",
    "cli.main": "driver",
}
OTHER = "Ray"


@dataclass
class Run:
    """The measurement of one crawl."""

    shards: int
    start_up: float = 0.0  # seconds until the first page
    seconds: float = 0.0
    pages: int = 0
    harvest: float = 0.0
    domains: int = 0  # with relevant pages
    kilobytes: float = 0.0  # sent between processes, a page
    milliseconds: dict[str, float] = field(default_factory=dict)  # of processor time a page
    megabytes: dict[str, float] = field(default_factory=dict)  # of a process, at the end

    @property
    def total(self) -> float:
        """Milliseconds of processor time a page, of all processes."""
        return sum(self.milliseconds.values())


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--pages", type=int, default=3_000)
    parser.add_argument("--runs", type=int, default=1, help="of each number of shards, in turns")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds that an answer takes")
    parser.add_argument("--requests", type=int, default=16, help="at a time, of a shard")
    parser.add_argument("--topic", default=TOPIC)
    parser.add_argument("--max", default="10", help="most pages per domain, or none")
    parser.add_argument("--first", type=int, default=200, help="pages that are left out")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    options = parser.parse_args()
    if options.first >= options.pages:
        parser.error("--first must be less than --pages")
    runs = []
    for _ in range(options.runs):
        for shards in options.shards:
            runs.append(measure(options, shards))
            print(row_of([runs[-1]]), file=sys.stderr, flush=True)
    table = table_of(options, runs)
    print(table)
    if options.output is not None:
        options.output.write_text(table + "\n", encoding="utf-8")


def measure(options: argparse.Namespace, shards: int) -> Run:
    """Crawl once in so many shards."""
    options.faults = f"drip=1:{options.slow}" if options.slow else ""
    run, began = Run(shards), time.monotonic()
    with TemporaryDirectory() as directory:
        log, said = Path(directory, "log"), Path(directory, "said")
        with (
            served(options, log, options.topic) as port,
            said.open("w", encoding="utf-8") as output,
        ):
            crawl = start(options, shards, port, Path(directory, "job"), output)
            first, last = follow(crawl, log, run, began, options.first)
        if crawl.returncode:
            sys.exit(f"the crawl failed:\n{said.read_text()[-2000:]}")
        run.harvest, run.domains = harvest(log), domains(log)
        found = re.search(r"([\d.]+) kB a page", said.read_text())
        run.kilobytes = float(found[1]) if found else 0.0
    used: Counter[str] = Counter()
    for pid, (part, ticks) in last[1].items():
        used[part] += ticks - first[1].get(pid, (part, 0))[1]
    run.pages, run.seconds = last[2] - first[2], last[0] - first[0]
    run.milliseconds = {part: 1000 * n / TICKS / run.pages for part, n in used.items()}
    return run


Mark = tuple[float, dict[int, tuple[str, int]], int]  # time, ticks by process, fetches


def follow(
    crawl: subprocess.Popen[bytes], log: Path, run: Run, began: float, left_out: int
) -> tuple[Mark, Mark]:
    """Watch a crawl until it ends; return marks after the pages left out and at the end."""
    first: Mark | None = None
    last: Mark = (0.0, {}, 0)
    seen: dict[int, tuple[str, int]] = {}
    while crawl.poll() is None:
        count, (ticks, memory) = fetches(log), usage(crawl.pid)
        if count and not run.start_up:
            run.start_up = time.monotonic() - began
        seen |= ticks
        mark = time.monotonic(), dict(seen), count
        if count > last[2]:  # not what comes after the last page
            last = mark
            run.megabytes = memory
        if first is None and count >= left_out:
            first = mark
        time.sleep(0.5)
    assert first is not None
    return first, last


def usage(root: int) -> tuple[dict[int, tuple[str, int]], dict[str, float]]:
    """Return the ticks of processor time by process, and the mean memory in MB by part."""
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, int, int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text().rpartition(")")[2].split()
            words = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has just ended
            continue
        if not words:  # it has ended: what it used was seen before
            continue
        pid = int(place.name)
        parents[pid] = int(stat[1])
        part = next((name for title, name in PARTS.items() if title in words), OTHER)
        found[pid] = part, int(stat[11]) + int(stat[12]), int(stat[21]) * PAGE
    ours = {pid: each for pid, each in found.items() if root in (pid, *ancestors(pid, parents))}
    memory: dict[str, list[float]] = {}
    for part, _, size in ours.values():
        memory.setdefault(part, []).append(size / 2**20)
    ticks = {pid: (part, used) for pid, (part, used, _) in ours.items()}
    return ticks, {part: statistics.mean(sizes) for part, sizes in memory.items()}


def start(
    options: argparse.Namespace, shards: int, port: int, job: Path, output: IO[str]
) -> subprocess.Popen[bytes]:
    """Start a crawl of the served web."""
    seeds = SyntheticWeb(options.topic, seed=options.seed).seeds
    program = "from tres_scrapy.cli.main import main; main()  # cli.main"
    command = [sys.executable, "-c", program, "cluster", "crawl", options.topic, *seeds]
    command += ["--web", "synthetic", "--web-proxy", f"http://127.0.0.1:{port}"]
    command += ["--pages", str(options.pages), "--max-per-domain", options.max]
    command += ["--shards", str(shards), "--job", str(job)]
    command += ["-s", f"CONCURRENT_REQUESTS={options.requests}"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    return subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=PROJECT, env=environment, stdout=output, stderr=output
    )


def table_of(options: argparse.Namespace, runs: list[Run]) -> str:
    """Return the table of all runs, the medians of each number of shards."""
    parts = [*PARTS.values(), OTHER]
    head = ["shards", "pages/s", "ms a page", *parts, "kB a page", "MB a shard", "MB a judge"]
    head += ["start-up, s", "harvest", "domains"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    lines += [
        row_of([run for run in runs if run.shards == n])
        for n in dict.fromkeys(run.shards for run in runs)
    ]
    slow = f", each answer after {options.slow} s" if options.slow else ""
    what = f"{options.topic}, {options.pages:,} pages, MAX={options.max}, web {options.seed}{slow}"
    requests = f"{options.requests} requests a shard, {os.cpu_count()} processors"
    return "\n".join([f"{what}, {requests}, medians of {options.runs}.", "", *lines])


def row_of(runs: list[Run]) -> str:
    """Return a row of the table."""

    def middle(values: list[float]) -> float:
        return statistics.median(values)

    parts = [
        f"{middle([run.milliseconds.get(part, 0.0) for run in runs]):.1f}"
        for part in [*PARTS.values(), OTHER]
    ]
    cells = [
        str(runs[0].shards),
        f"{middle([run.pages / run.seconds for run in runs]):.1f}",
        f"{middle([run.total for run in runs]):.1f}",
        *parts,
        f"{middle([run.kilobytes for run in runs]):.1f}",
        f"{middle([run.megabytes.get('shards', 0) for run in runs]):.0f}",
        f"{middle([run.megabytes.get('judges', 0) for run in runs]):.0f}",
        f"{middle([run.start_up for run in runs]):.0f}",
        f"{middle([run.harvest for run in runs]):.3f}",
        f"{middle([run.domains for run in runs]):.0f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
