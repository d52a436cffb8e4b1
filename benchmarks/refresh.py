"""The experiments of the refresh paper, all figures and bands of them.

    python benchmarks/refresh.py [--jobs 2] [--only single/fgdqn] [--results FOLDER]

Writes results/refresh/runs.jsonl as the runs end, and goes on where it was stopped; of that
simulation.md with the tables, single.svg and multiple.svg. Some 40 minutes of one core, nearly all
for FG-DQN. Exits with status 1 where a figure is outside its band.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from refreshing.page import write
from refreshing.run import run_all

RESULTS = Path(__file__).parent / "results" / "refresh"


def main() -> None:
    """Do the runs that are missing and write the page."""
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
