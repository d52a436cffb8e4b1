"""Kill the processes of a crawl in shards again and again, and count what was lost.

    python benchmarks/cluster_kill.py [--pages 20000] [--kills 50] [--shards 4] [--max 10]
        [--seed 1] [--faults SCHEDULE] [--snapshots SECONDS] [--output FILE]

Another process serves a synthetic web and keeps the log. `tres cluster crawl` fetches it, while
random processes get SIGKILL at random instants: a shard, the learner, the coordinator, the driver,
or Ray's raylet, each kind equally often. A driver that has ended is started again by the same
command. Then the log, the folders of all shards and the output are compared. The exit status is 1
if anything was lost.

With `--snapshots`, shards copy themselves to another folder so often, and there are two more kinds:
a shard dies with its disk, or all processes die with all disks. What a shard did after its last
snapshot counts for nothing then, so the log does not say which pages may be fetched twice: MAX is
checked for what the shards have booked.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kill import (
    PATIENT,
    PROJECT,
    TOPIC,
    booked_pages,
    domain,
    fetches,
    given_up,
    harvest,
    leased_urls,
    links_of,
    over_max,
    pages_of,
    recovered_crawl,
    relevant_pages,
    reported,
    served,
    twice,
    urls_in,
)

from tres_scrapy.cluster.router import LinkBatch
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.run.run_file import NAME

KINDS = ("shard", "learner", "coordinator", "driver", "raylet")
DISKS = ("disk", "all disks")  # with snapshots
TITLES = {"shard": "ray::ShardActor", "learner": "ray::LearnerActor"}
TITLES |= {"coordinator": "ray::CoordinatorActor", "raylet": "raylet/raylet"}
START = 120.0  # seconds until all processes run


@dataclass
class Findings:
    """The comparison of the log, the shards and the output; `losses` must be 0."""

    kills: dict[str, int]
    restarts: int
    seconds: float
    pages: int
    harvest: float
    pages_fetched_twice: int
    links_discovered: int
    losses: dict[str, int]


def main() -> int:
    """Run the crawl and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--max", type=int, default=10, help="most pages per domain")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the web and the kills")
    parser.add_argument("--faults", default="", help="a schedule, or `default`")
    parser.add_argument("--snapshots", type=float, help="seconds between two; disks are lost, too")
    parser.add_argument("--output", type=Path, help="also write the findings to this file")
    options = parser.parse_args()
    with TemporaryDirectory() as directory:
        findings = examine(options, Path(directory))
    return reported(asdict(findings), options.output)


def examine(options: argparse.Namespace, directory: Path) -> Findings:
    """Crawl with kills; compare log, shards and output."""
    web, log, job = SyntheticWeb(TOPIC, seed=options.seed), directory / "log", directory / "job"
    draw = random.Random(options.seed)
    known = KINDS + DISKS if options.snapshots else KINDS
    kinds = [known[number % len(known)] for number in range(options.kills)]
    draw.shuffle(kinds)
    whens = sorted(draw.choices(range(options.pages), k=options.kills))
    under_way, done, starts, began = Counter[str](), Counter[str](), 0, time.monotonic()
    with served(options, log) as port:
        driver = None
        for number, (kind, when) in enumerate(zip(kinds, whens, strict=True), start=1):
            if driver is None or driver.poll() is not None:
                driver, starts = start(options, web, port, job), starts + 1
            wait_for(driver, log, when)
            if kill(kind, driver, when, job) and not options.snapshots:
                under_way.update(leased_in(job, web))
            done[kind] += 1
            print(f"kill {number} of {len(whens)}, {kind}: {fetches(log)} fetches", flush=True)
        while driver is None or driver.wait():  # it ends with 0 when the crawl is complete
            driver, starts = start(options, web, port, job), starts + 1
    seconds = round(time.monotonic() - began, 1)
    return Findings(dict(done), starts - 1, seconds, **compare(options, web, log, job, under_way))


def compare(
    options: argparse.Namespace, web: SyntheticWeb, log: Path, job: Path, under_way: Counter[str]
) -> dict[str, Any]:
    """Return the pages of the crawl and what was lost."""
    shards = [job / f"shard-{number}" for number in range(options.shards)]
    urls = Counter(str(line["url"]) for line in pages_of(log))
    booked = [url for shard in shards for url in booked_pages(shard)]
    links = (set(booked) if options.snapshots else set(urls)) | links_of(
        web, urls.keys() & set(booked)
    )
    stores = [recovered_crawl(shard, options.max, ShardJournal).store for shard in shards]
    relevant = set().union(*map(relevant_pages, shards))
    exported = urls_in(job / f"{TOPIC}.jsonl")
    forgotten = bool(options.snapshots)  # pages that the log has, but no shard
    return {
        "pages": len(urls),
        "harvest": harvest(log),
        "pages_fetched_twice": urls.total() - len(urls),
        "links_discovered": len(links),
        "losses": {
            "fetched twice without a kill": 0 if forgotten else twice(log, under_way),
            "discovered and lost": lost(stores, links, booked, waiting_mail(shards), options.max),
            "domains over MAX": over_max(log, booked if forgotten else urls, booked, options.max),
            "pages more or less than T": abs(len(booked) - options.pages),
            "pages booked twice": len(booked) - len(set(booked)),
            "items missing": len(relevant - exported.keys()),
            "items of no relevant page": len(exported.keys() - relevant),
            "items twice": exported.total() - len(exported),
        },
    }


def lost(
    stores: list[SampleStore], links: set[str], booked: list[str], outbox: set[str], most: int
) -> int:
    """Count and print links that no shard knows although MAX allows them."""
    waiting = {store.url(row) for store in stores for row in store.pending_rows().tolist()}
    pages = Counter(map(domain, booked))
    found = [
        url
        for url in links - waiting - outbox
        if pages[domain(url)] < most
        and not any(store.closure.is_closed(url) or given_up(store, url) for store in stores)
    ]
    for url in found:
        print(f"lost: {url}: {pages[domain(url)]} pages booked")
    return len(found)


def waiting_mail(shards: list[Path]) -> set[str]:
    """Return the URLs of links that were on their way to another shard at the end."""
    found: set[str] = set()
    for shard in shards:
        with closing(sqlite3.connect(shard / NAME)) as connection:
            for (data,) in connection.execute("SELECT value FROM outbox"):
                found.update(LinkBatch.unpacked(data).links.urls)
    return found


def start(
    options: argparse.Namespace, web: SyntheticWeb, port: int, job: Path
) -> subprocess.Popen[bytes]:
    """Start the crawl, or resume it, through the web's proxy."""
    program = "from tres_scrapy.cli.main import main; main()"
    command = [sys.executable, "-c", program, "cluster", "crawl", TOPIC]
    command += [*web.seeds, "--pages", str(options.pages), "--max-per-domain", str(options.max)]
    command += ["--shards", str(options.shards), "--job", str(job), "--private-addresses"]
    if options.snapshots:
        command += ["--snapshots", f"file://{job.with_name('snapshots')}"]
        command += ["--snapshot-interval", str(options.snapshots)]
    command += ["-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS_PER_DOMAIN=16"]
    command += [part for each in PATIENT for part in ("-s", f"TRES_{each}")]
    address = f"http://127.0.0.1:{port}"
    environment = {**os.environ, "http_proxy": address, "PYTHONPATH": str(PROJECT)}
    environment |= {"no_proxy": ""}
    return subprocess.Popen(command, cwd=PROJECT, env=environment)  # noqa: S603 - our own


def wait_for(driver: subprocess.Popen[bytes], log: Path, when: int) -> None:
    """Wait until the web has given a number of answers, and a little longer."""
    least = max(when, fetches(log))
    while fetches(log) < least and driver.poll() is None:
        time.sleep(0.01)
    time.sleep(3 * random.Random(when).random() ** 3)


def kill(kind: str, driver: subprocess.Popen[bytes], when: int, job: Path) -> bool:
    """Kill a process of a kind; return whether shards died and left their folders."""
    found, until = list[int](), time.monotonic() + START
    draw = random.Random(when)
    while not found and driver.poll() is None and time.monotonic() < until:
        if kind in {"driver", "all disks"}:
            found = [driver.pid]
        else:
            folder = draw.choice(sorted(job.glob("shard-[0-9]")) or [job / "shard-0"])
            found = users_of(folder) if kind == "disk" else processes(driver.pid, TITLES[kind])
        time.sleep(0.1)
    if not found:
        return False
    victim = draw.choice(found)
    os.kill(victim, signal.SIGKILL)
    if kind == "disk":
        while victim in users_of(folder):
            time.sleep(0.01)
        shutil.rmtree(folder)
    if kind in {"driver", "raylet", "all disks"}:
        driver.wait()
        while users_of(job):  # the others notice within some seconds
            time.sleep(0.2)
    if kind == "all disks":
        shutil.rmtree(job)
    return kind in {"shard", "driver", "raylet"}


def leased_in(job: Path, web: SyntheticWeb) -> Counter[str]:
    """Return the URLs that shards which do not run had leased, from copies of their files."""
    found = Counter[str]()
    for shard in job.glob("shard-*"):
        with TemporaryDirectory() as directory:
            for file in shard.glob(f"{NAME}*"):
                shutil.copy(file, directory)
            found.update(leased_urls(Path(directory), web))
    return found


def processes(root: int, title: str) -> list[int]:
    """Return the processes below a process whose command line contains a title."""
    parents, titles = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            stat = (place / "stat").read_text().rpartition(")")[2].split()
            titles[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has just ended
            continue
        parents[int(place.name)] = int(stat[1])
    return [pid for pid in titles if title in titles[pid] and root in ancestors(pid, parents)]


def users_of(folder: Path) -> list[int]:
    """Return the processes that have a file below a folder open."""
    found = []
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has just been closed
            if str(place.readlink()).startswith(f"{folder}/"):
                found.append(int(place.parts[2]))
    return found


def ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """Yield the parents of a process, the nearest first."""
    while pid in parents:
        pid = parents[pid]
        yield pid


if __name__ == "__main__":
    sys.exit(main())
