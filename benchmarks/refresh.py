"""Run all experiments of the refresh paper and check the figures against their bands.

    python benchmarks/refresh.py [--jobs 2] [--only single/fgdqn] [--results FOLDER]

Appends to results/refresh/runs.jsonl when a run ends; an interrupted benchmark continues where it
stopped. Then writes simulation.md, single.svg and multiple.svg. Takes some 40 minutes on one core,
nearly all for FG-DQN. The exit status is 1 if a figure is outside its band.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from refreshing.page import write
from refreshing.run import run_all

RESULTS = Path(__file__).parent / "results" / "refresh"


def main() -> None:
    """Do the missing runs and write the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--only", default="", help="only cases with this in their name")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    runs = run_all(options.results / "runs.jsonl", options.jobs, options.only)
    if not write(options.results, runs):
        sys.exit("a figure is outside its band: see simulation.md")


if __name__ == "__main__":
    main()
