"""Compare how a crawl chooses with 16 requests at a time and delays, for several `hurry`.

    python benchmarks/hurry.py [--topics food sports hardware] [--webs 61 62] [--pages 1500]
        [--hurry 1 .6 0] [--max none 10] [--delay 1] [--latency .5] [--starts URL...]
        [-s TRES_NAME=VALUE] [--output FILE]

A crawl of an offline web is simulated, with a simulated clock: each answer takes `latency`
seconds, the next request to a host is sent `delay` seconds after the last, and the crawler itself
takes no time. "alone" has one request at a time and no delay: each choice knows all outcomes. "at
once" has 16 and no delay. Prints the means over webs and starts, with the standard errors of the
differences to `hurry=1`. A recorded web is set with -s (TRES_WEB, TRES_WEB_DATA, TRES_WEB_LABELS).
"""

from __future__ import annotations

import argparse
import heapq
import os
from itertools import product
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

from comparing.simulation import Simulation, World

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.patience import Patience
from tres_scrapy.frontier.ledger import Availability


class Pace(NamedTuple):
    """How many requests are made at a time, and how fast."""

    name: str
    slots: int
    delay: float  # seconds between two requests to a host
    latency: float  # seconds until an answer
    hurry: float = 1.0


class TimedSimulation(Simulation):
    """A crawl with several requests at a time, on a simulated clock."""

    def __init__(self, world: World, config: Config, pace: Pace) -> None:
        super().__init__(world, config)
        self.now = 0.0
        self._pace = pace
        self._free: dict[int, float] = {}  # by host, when it takes the next request
        self._coming: list[tuple[float, int]] = []  # answers: time, row
        self.patience = Patience(pace.hurry)

    def crawl_all(self) -> None:
        """Crawl until the last page or the last link."""
        self.crawl.add_seeds(self._world.seeds(self._config))
        while True:
            while len(self._coming) < self._pace.slots and self._send():
                pass
            times = [time for time, _ in self._coming[:1]]
            if len(self._coming) < self._pace.slots and self.crawl.store.pending:
                times += [time for time in self._free.values() if time > self.now]
            if not times or (self.crawl.finished and not self._coming):
                return
            self.now = min(times)
            while self._coming and self._coming[0][0] <= self.now:
                self.fetch(heapq.heappop(self._coming)[1])

    def _send(self) -> bool:
        busy = [host for host, time in self._free.items() if time > self.now]
        self._free = {host: self._free[host] for host in busy}
        free = 1 - len(self._coming) / self._pace.slots
        waits = self.patience.has_credit(self.now, free, waits=self.crawl.waits)
        decision = self.crawl.next(Availability(busy, busy if waits else ()))
        if decision is None:
            return False
        host = self.crawl.store["host"][decision.row]
        if self._pace.delay:
            self._free[host] = self.now + max(self._pace.delay, self._pace.latency)
        heapq.heappush(self._coming, (self.now + self._pace.latency, decision.row))
        return True


def main() -> None:
    """Crawl and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", nargs="+", default=["food", "sports", "hardware"])
    parser.add_argument("--webs", type=int, nargs="+", default=[61, 62])
    parser.add_argument("--max", nargs="+", default=["none", "10"])
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--hurry", type=float, nargs="*", default=[1, 0.6, 0])
    parser.add_argument("--delay", type=float, default=1)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--starts", nargs="+", default=[""])
    parser.add_argument("--output", type=Path, help="write the table there as well")
    parser.add_argument("-s", dest="settings", action="append", default=[])
    options = parser.parse_args()
    delays = options.delay, options.latency
    paces = [Pace("alone", 1, 0, 0), Pace("at once", 16, 0, options.latency)]
    paces += [Pace(f"hurry={hurry:g}", 16, *delays, hurry) for hurry in options.hurry]
    found: dict[tuple[str, str], list[tuple[float, int, float, float]]] = {}
    for topic in options.topics:
        for web in options.webs:
            world: World | None = None
            for start, cap, pace in product(options.starts, options.max, paces):
                settings = {
                    "TRES_WEB": "synthetic",
                    "TRES_TOPIC": topic,
                    "TRES_WEB_SEED": web,
                    "TRES_RANDOM_SEED": web,
                    "TRES_SEED": start,
                    "TRES_MAX_PER_DOMAIN": cap,
                    "TRES_PAGES": options.pages,
                } | dict(each.split("=", 1) for each in options.settings)
                config = Config.from_settings(settings)
                world = world or World(config, user_agent="tres")
                row = crawled(world, config, pace)
                found.setdefault((cap, pace.name), []).append(row)
                told = f"{row[0]:.1f} %, {row[1]} domains, {row[2]:.0f} s, waited {row[3]:.0f} s"
                print(f"{topic} {web} {start} MAX {cap} {pace.name}: {told}", flush=True)
    lines = table(found, f"hurry={options.hurry[0]:g}")
    print("\n".join(["", *lines]))
    if options.output is not None:
        options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")


def crawled(world: World, config: Config, pace: Pace) -> tuple[float, int, float, float]:
    """Return harvest rate in %, relevant domains, seconds, and seconds waited."""
    crawl = TimedSimulation(world, config, pace)
    crawl.crawl_all()
    count = crawl.count
    harvest = 100 * count.relevant / count.pages
    return harvest, len(count.domains), crawl.now, crawl.patience.waited


def table(
    found: dict[tuple[str, str], list[tuple[float, int, float, float]]], base: str
) -> list[str]:
    """Return a table of means, with differences to the crawls named `base`."""
    lines = [
        f"| MAX | | harvest rate, % | to {base} | domains | seconds | waited |",
        "|---|---|---|---|---|---|---|",
    ]
    for (cap, name), rows in found.items():
        harvest, domains, seconds, waited = map(mean, zip(*rows, strict=True))
        bases = [each[0] for each in found[cap, base]]
        more = [row[0] - one for row, one in zip(rows, bases, strict=True)]
        error = stdev(more) / len(more) ** 0.5 if more[1:] else 0.0
        cells = f"{harvest:.1f} | {mean(more):+.1f} ± {error:.1f} | {domains:.0f} | {seconds:.0f}"
        lines.append(f"| {cap} | {name} | {cells} | {waited / max(seconds, 1):.2f} |")
    return lines


if __name__ == "__main__":
    main()
