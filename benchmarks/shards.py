"""Show what it costs to divide a crawl into shards: harvest, domains, and bytes between them.

    python benchmarks/shards.py [--shards 1 2 4 8 16 64] [--pages 5000] [--max none 10]
        [--topics food sports hardware] [--seeds 1] [--delay 0.05] [--requests 16] [--results DIR]

Each crawl is simulated on a synthetic web, which counts: no HTTP, and messages that arrive after a
delay. Crawls that results/shards.csv holds are not repeated. Prints the means over seeds, with what
differs from one shard, and writes them to results/shards.md.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import NamedTuple, get_type_hints

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

from comparing.simulation import World
from shard_simulation import ShardSimulation, Timing

from tres_scrapy.config.config import Config

REQUESTS = 16  # at a time, of a shard; all crawls are compared with one shard that has so many
RESULTS = Path(__file__).parent / "results"
HEADER = (
    "| topic, MAX | T | shards | requests a shard | webs | harvest rate, % | to 1 shard | domains "
    "| pages/s | batches a page | bytes a page | transitions hurried |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|"
)


class Sharded(NamedTuple):
    """One crawl: harvest rate in %, domains with relevant pages, simulated seconds, messages."""

    topic: str
    cap: str
    pages: int
    seed: int
    delay: float
    shards: int
    requests: int
    harvest: float
    domains: int
    seconds: float
    batches: int
    batch_bytes: int
    transition_bytes: int
    weight_bytes: int
    transitions: int
    hurried: int
    fetched: int  # pages: fewer than `pages` if the links ran out

    @property
    def bytes_a_page(self) -> float:
        """The bytes between processes for each page."""
        return (self.batch_bytes + self.transition_bytes + self.weight_bytes) / max(1, self.fetched)


def crawls(options: argparse.Namespace, known: list[Sharded]) -> Iterator[Sharded]:
    """Yield the crawls that are not known yet, as they end; a web is made once."""
    done = {each[:7] for each in known}
    timing = Timing(slots=options.requests, delay=options.delay)
    for topic in options.topics:
        for seed in options.seeds:
            world: World | None = None
            for cap in options.max:
                config = _config(topic, cap, options.pages, seed)
                for shards in options.shards:
                    key = (topic, cap, options.pages, seed, options.delay, shards, options.requests)
                    if key in done:
                        continue
                    world = world or World(config, user_agent="tres")
                    print(*key, file=sys.stderr, flush=True)
                    found = ShardSimulation(world, config, shards, timing).run()
                    traffic = found.traffic
                    yield Sharded(
                        *key,
                        harvest=round(100 * found.relevant / found.pages, 2),
                        domains=found.domains,
                        seconds=found.seconds,
                        batches=traffic.batches,
                        batch_bytes=traffic.batch_bytes,
                        transition_bytes=traffic.transition_bytes,
                        weight_bytes=traffic.weight_bytes,
                        transitions=traffic.transitions,
                        hurried=found.hurried,
                        fetched=found.pages,
                    )


def table(found: list[Sharded]) -> Iterator[str]:
    """Yield the lines of a table of means over seeds."""
    yield HEADER
    one = {each[:5]: each for each in found if (each.shards, each.requests) == (1, REQUESTS)}
    groups: dict[tuple[str, str, int, float, int, int], list[Sharded]] = {}
    for each in sorted(found, key=lambda each: each[:3] + each[4:7]):
        key = each.topic, each.cap, each.pages, each.delay, each.shards, each.requests
        groups.setdefault(key, []).append(each)
    for (topic, cap, pages, _, shards, requests), some in groups.items():
        pairs = [(each, one[each[:5]]) for each in some if each[:5] in one]
        less = (
            f"{mean(each.harvest - other.harvest for each, other in pairs):+.1f}" if pairs else ""
        )
        fetched = sum(each.fetched for each in some)
        hurried = sum(each.hurried for each in some) / max(
            1, sum(each.transitions for each in some)
        )
        yield (
            f"| {topic}, {cap} | {pages:,} | {shards} | {requests} | {len(some)} "
            f"| {mean(each.harvest for each in some):.1f} "
            f"| {less} | {mean(each.domains for each in some):.0f} "
            f"| {fetched / sum(each.seconds for each in some):.0f} "
            f"| {sum(each.batches for each in some) / fetched:.1f} "
            f"| {mean(each.bytes_a_page for each in some):,.0f} "
            f"| {hurried:.0%} |"
        )


def main() -> None:
    """Crawl, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64])
    parser.add_argument("--pages", type=int, default=5000)
    parser.add_argument("--topics", nargs="+", default=["food", "sports", "hardware"])
    parser.add_argument("--max", nargs="+", default=["none", "10"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--delay", type=float, default=0.05, help="seconds that a message takes")
    parser.add_argument("--requests", type=int, default=REQUESTS, help="at a time, of a shard")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    file = options.results / "shards.csv"
    known = _read(file)
    with file.open("a", newline="", encoding="utf-8") as output:
        writer = csv.writer(output, lineterminator="\n")
        if not known:
            writer.writerow(Sharded._fields)
        for each in crawls(options, known):
            known.append(each)
            writer.writerow(each)
            output.flush()
    lines = list(table(known))
    print(*lines, sep="\n")
    about = "Means over webs, `to 1 shard` in points (`python benchmarks/shards.py`)."
    text = "\n".join(["# One crawl in shards", "", about, "", *lines, ""])
    file.with_suffix(".md").write_text(text, encoding="utf-8")


def _config(topic: str, cap: str, pages: int, seed: int) -> Config:
    return Config.from_settings(
        {
            "TRES_WEB": "synthetic",
            "TRES_TOPIC": topic,
            "TRES_WEB_SEED": seed,
            "TRES_RANDOM_SEED": seed,
            "TRES_MAX_PER_DOMAIN": cap,
            "TRES_PAGES": pages,
        }
    )


def _read(file: Path) -> list[Sharded]:
    """Return the crawls of an earlier run."""
    if not file.exists():
        return []
    kinds = get_type_hints(Sharded)
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Sharded(**{name: kinds[name](text) for name, text in row.items()})
            for row in csv.DictReader(lines)
        ]


if __name__ == "__main__":
    main()
