"""Measure the cost of kills: the harvest rate on the same webs with and without kills.

    python benchmarks/interruption.py [--topics food] [--webs 10] [--pages 2000] [--kills 20]

Each web is crawled twice in one process, with the same random seed and 16 samples in progress at a
time. The second crawl is killed at random instants and resumed from its journal. Prints and writes
results/interruption.csv, one row per web: harvest rates in percent, counted by the web, and the
difference. Existing rows are kept; the last lines are the mean difference and its standard error.
"""

from __future__ import annotations

import argparse
import csv
import random
from collections import deque
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import torch

from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.crawl.assembly import make_crawl
from tres_scrapy.lab.simulation import Simulation, World
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import marks, recover

UNDER_WAY = 16
RESULTS = Path(__file__).parent / "results" / "interruption.csv"
FIELDS = ("topic", "web", "pages", "kills", "whole", "killed", "difference")


class Interrupted(Simulation):
    """A crawl that is killed at the numbers of pages in `kills`."""

    def __init__(self, world: World, config: Config, directory: Path, kills: list[int]) -> None:
        super().__init__(world, config)
        self._directory = directory
        self._kills = deque(sorted(kills))
        self._under_way: deque[int] = deque()
        self._begin()
        self.crawl.add_seeds(world.seeds(config))

    def harvest(self) -> float:
        """Crawl to the end; return the harvest rate in percent."""
        while self._fill():
            if self._kills and self.crawl.pages >= self._kills[0]:
                self._kills.popleft()
                self._journal.database.close()
                self._begin()
            else:
                self._end_first()
        self._journal.close()
        return 100 * self.count.relevant / self.count.pages

    def _begin(self) -> None:
        """Start a crawl as a new process would: from the journal only."""
        self.crawl = make_crawl(self._config, self._world.pack)
        self._journal = Journal.open(self._directory, {})
        recover(self._journal, self.crawl)
        self.crawl.remember(marks(self._journal))
        self._under_way.clear()

    def _fill(self) -> bool:
        """Lease samples up to the limit; return whether any is in progress."""
        while len(self._under_way) < UNDER_WAY and (decision := self.crawl.next()) is not None:
            self._journal.lease(self.crawl, decision)
            self._under_way.append(decision.row)
        return bool(self._under_way)

    def _end_first(self) -> None:
        self._journal.book(self.crawl, self.fetch(self._under_way.popleft()))


def main() -> None:
    """Crawl the webs missing in the results, and summarise all results."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--topics", nargs="+", default=["food"])
    parser.add_argument("--webs", type=int, default=10)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    torch.set_num_threads(1)
    shape = options.pages, options.kills
    rows = list(read_rows(*shape))
    for topic in options.topics:
        for web in range(1, options.webs + 1):
            if (topic, web) not in {row[:2] for row in rows}:
                rows.append((topic, web, *compare(topic, web, *shape)))
                write_row(topic, web, *shape, *rows[-1][2:])
    differences = [killed - whole for _, _, whole, killed in rows]
    error = stdev(differences) / sqrt(len(rows)) if len(rows) > 1 else float("nan")
    print(f"{len(rows)} webs: {mean(differences):+.2f} points, standard error {error:.2f}")


def compare(topic: str, web: int, pages: int, kills: int) -> tuple[float, float]:
    """Return the harvest rates of a web without and with kills."""
    synthetic = WebOptions("synthetic", web)
    config = Config(topic=topic, web=synthetic, pages=pages, max_per_domain=Cap(10, 10))
    world = World(config, user_agent="tres")
    whens = random.Random(web).sample(range(1, pages), kills)
    with TemporaryDirectory() as first, TemporaryDirectory() as second:
        whole = Interrupted(world, config, Path(first), []).harvest()
        killed = Interrupted(world, config, Path(second), whens).harvest()
    return round(whole, 2), round(killed, 2)


def read_rows(pages: int, kills: int) -> Iterator[tuple[str, int, float, float]]:
    """Yield topic, web and both harvest rates of the results for this number of pages."""
    if RESULTS.exists():
        with RESULTS.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if (int(row["pages"]), int(row["kills"])) == (pages, kills):
                    yield row["topic"], int(row["web"]), float(row["whole"]), float(row["killed"])


def write_row(topic: str, web: int, *figures: float) -> None:
    """Append the result of a web, and print it."""
    new = not RESULTS.exists()
    pages, kills, whole, killed = figures
    row = topic, web, pages, kills, whole, killed, round(killed - whole, 2)
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerow(row)
    print(*row, flush=True)


if __name__ == "__main__":
    main()
