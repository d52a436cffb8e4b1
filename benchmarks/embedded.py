"""Seconds of two slow crawls of an ordinary Scrapy project, without and with the add-on.

    python benchmarks/embedded.py [--runs 3]

The crawls: a page of each of 64 hosts, and 48 pages of one host; each answer takes one second. Both
crawls have Scrapy's default settings. Scrapy 2.19 sends up to 16 requests at once to one host when
they come in one batch: its limit of 8 counts a request only once its task has started.

The figures are the seconds between the first and the last request that the web received, and in
brackets those of the whole crawl, which also starts the process that judges pages. The spiders and
the web are those of tests/ordinary/, which compares what ordinary spiders do.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
SPIDERS = {"slow-hosts": "64 hosts of 1 s", "slow-pages": "48 pages of 1 s of one host"}


def seconds_of(name: str, python: Path, crawl_both: Callable[..., Any]) -> list[float]:
    """Return the seconds without and with the add-on: between requests, then in all."""
    pair = [crawled[name] for crawled in crawl_both(python, [name])]
    counts = [len(crawled.runs[0]["items"]) for crawled in pair]
    if counts[0] != counts[1]:
        raise SystemExit(f"{name}: {counts[0]} items without the add-on, {counts[1]} with it")
    return [each.span for each in pair] + [each.runs[0]["seconds"] for each in pair]


def main() -> None:
    """Crawl and print a line for each spider."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    runs: int = parser.parse_args().runs
    sys.path[:0] = [str(TESTS / "ordinary"), str(TESTS)]
    crawl_both = import_module("comparison").crawl_both
    print(f"{'crawl':32}{'Scrapy':>16}{'with the add-on':>18}{'ratio':>8}")
    with TemporaryDirectory() as folder:
        interpreter = import_module("preloaded").Interpreter(Path(folder))
        try:
            for name, what in SPIDERS.items():
                found = [seconds_of(name, interpreter.path, crawl_both) for _ in range(runs)]
                plain, ours, all_plain, all_ours = map(median, zip(*found, strict=True))
                shown = f"{plain:.1f} s ({all_plain:.1f})", f"{ours:.1f} s ({all_ours:.1f})"
                print(f"{what:32}{shown[0]:>16}{shown[1]:>18}{ours / plain:8.2f}")
        finally:
            interpreter.close()


if __name__ == "__main__":
    main()
