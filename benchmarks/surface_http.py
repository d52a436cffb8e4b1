"""Records found through a search box: it searches 10,000 titles and returns 100 per query.

    python benchmarks/surface_http.py [--seeds 0 1 2] [--queries 120]

Runs `scrapy crawl surface` on library.test of the offline web `deep` and prints, from the web's
log, how many records its queries returned.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROBE = re.compile("[bcdfghjkmpqvwxz]{11}")  # first query of the spider


def crawl(seed: int, queries: int) -> list[tuple[str, list[int]]]:
    """Return each result page of a crawl: the query and the numbers of its records."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "web.jsonl")
        arguments = {
            "topic": "food",
            "web": "webs.deep:DeepWeb",
            "web_seed": seed,
            "web_log": log,
            "output": log.with_name("pages.jsonl"),
            "surface_queries": queries,
            "surface_min_yield": 0,
            "surface_follow": 0,
        }
        options = [part for item in arguments.items() for part in ("-a", "{}={}".format(*item))]
        command = [sys.executable, "-m", "scrapy", "crawl", "surface", *options]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "benchmarks")}
        subprocess.run(command, cwd=ROOT, check=True, env=environment)  # noqa: S603 - our own program, no shell
        lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
        asked = [line for line in lines if line["kind"] == "search"]
        # a retried probe is there twice
        return [(a["query"], a["returned"]) for a in asked if not PROBE.fullmatch(a["query"])]


def main() -> None:
    """Run the crawls and print the records known after 30, 60, ... queries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--queries", type=int, default=120)
    options = parser.parse_args()
    for seed in options.seeds:
        known: set[int] = set()
        after: dict[str, int] = {}
        for query, numbers in crawl(seed, options.queries):
            known.update(numbers)
            after[query] = len(known)
        print(f"seed {seed}, {len(after)} queries: {list(after.values())[29::30]}", flush=True)


if __name__ == "__main__":
    main()
