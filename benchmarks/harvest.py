"""Harvest rates by the server's own count: `scrapy crawl tres` over HTTP, several webs.

    python benchmarks/harvest.py synthetic [--pages 3000] [--seeds 1 2 3]
    python benchmarks/harvest.py corpus --data FILE [--pages 400] [--seeds 1 2 3]

Runs TRES and Random for each cap and seed, one crawl after the other, prints each as it ends and
writes results/harvest_<web>.csv and .md. The seed is the synthetic web's own and the crawler's
random seed; for the corpus web, which has no seed, it is the latter alone.
"""

from __future__ import annotations

import argparse
import csv
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
CAPS = {"synthetic": ("none", "10"), "corpus": ("none",)}
FIELDS = ("policy", "max", "seed", "pages", "relevant", "harvest", "domains", "seconds")
COUNT = re.compile(r"own count: (\d+) pages, (\d+) relevant, harvest rate ([\d.]+), (\d+) relevant")
SECONDS = re.compile(r"'elapsed_time_seconds': ([\d.]+)")

Row = dict[str, str | int | float]


def crawl(options: argparse.Namespace, policy: str, cap: str, seed: int) -> Row:
    """Run one crawl and return the server's count of it; raise RuntimeError with its log's end."""
    arguments = [
        *("-a", f"topic={options.topic}", "-a", f"pages={options.pages}", "-a", f"policy={policy}"),
        *("-a", f"max_per_domain={cap}", "-a", f"random_seed={seed}"),
        *("-s", f"TRES_WEB={options.web}", "-s", f"TRES_WEB_SEED={seed}"),
        *(["-s", f"TRES_WEB_DATA={options.data.resolve()}"] if options.data else []),
        *options.scrapy,
    ]
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.run(  # noqa: S603 - our own command
            [
                sys.executable,
                "-m",
                "scrapy",
                "crawl",
                "tres",
                *arguments,
                "-a",
                f"output={directory}/o.jsonl",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    count, seconds = COUNT.search(process.stderr), SECONDS.search(process.stderr)
    if count is None or seconds is None:
        raise RuntimeError(process.stderr[-2000:])
    return {
        "policy": policy,
        "max": cap,
        "seed": seed,
        "pages": int(count[1]),
        "relevant": int(count[2]),
        "harvest": float(count[3]),
        "domains": int(count[4]),
        "seconds": round(float(seconds[1]), 1),
    }


def table(rows: list[Row]) -> list[str]:
    """Return the lines of a Markdown table: mean and standard deviation over the seeds."""
    lines = [
        "| policy | MAX | harvest rate % | relevant domains | pages |",
        "|---|---|---|---|---|",
    ]
    for policy, cap in dict.fromkeys((row["policy"], row["max"]) for row in rows):
        runs = [row for row in rows if (row["policy"], row["max"]) == (policy, cap)]
        harvest = _spread([100 * float(row["harvest"]) for row in runs])
        domains = _spread([float(row["domains"]) for row in runs])
        pages = ", ".join(str(row["pages"]) for row in runs)
        lines.append(f"| {policy} | {cap} | {harvest} | {domains} | {pages} |")
    return lines


def _spread(values: list[float]) -> str:
    deviation = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.1f} ± {deviation:.1f}"


def main() -> None:
    """Run the crawls and write the results as they come."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("web", choices=list(CAPS))
    parser.add_argument("--topic", default="food")
    parser.add_argument("--pages", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--caps", nargs="+")
    parser.add_argument("--policies", nargs="+", default=["tres", "random"])
    parser.add_argument("--data", type=Path, help="documents of the corpus web")
    parser.add_argument("--name", help="name of the result files, default harvest_WEB")
    options, rest = parser.parse_known_args()
    options.scrapy = rest
    options.pages = options.pages or {"synthetic": 3000, "corpus": 400}[options.web]
    name = options.name or f"harvest_{options.web}"
    rows: list[Row] = []
    for policy in options.policies:
        for cap in options.caps or CAPS[options.web]:
            for seed in options.seeds:
                rows.append(crawl(options, policy, cap, seed))
                print(*rows[-1].values(), sep="\t", flush=True)
                _write(name, rows)
    print(*table(rows), sep="\n")


def _write(name: str, rows: list[Row]) -> None:
    RESULTS.mkdir(exist_ok=True)
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    text = "\n".join(["# Harvest by the server's own count", "", *table(rows), ""])
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
