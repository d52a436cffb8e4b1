"""Compare the harvest rate with 16 requests at a time and with one, on the same webs.

    python benchmarks/concurrency.py [--pages 2000] [--seeds 1 2 3] [--topics food] [--output FILE]

Each pair of crawls goes over HTTP to a synthetic web, which counts; rows are written as they come.
With one request at a time, a choice knows all earlier outcomes; with 16, up to 15 are unknown.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PROJECT = Path(__file__).parents[1]
COUNT = re.compile(r"By the web's true labels: .*harvest rate ([\d.]+), (\d+) relevant domains")


def crawled(topic: str, seed: int, pages: int, concurrency: int) -> tuple[float, int]:
    """Return harvest rate in % and relevant domains, counted by the web."""
    with TemporaryDirectory() as directory:
        arguments = {
            "topic": topic,
            "pages": pages,
            "web": "synthetic",
            "web_seed": seed,
            "output": f"{directory}/items.jsonl",
        }
        command = [sys.executable, "-m", "scrapy", "crawl", "tres"]
        for name, value in arguments.items():
            command += ["-a", f"{name}={value}"]
        command += ["-s", f"CONCURRENT_REQUESTS={concurrency}"]
        done = subprocess.run(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True, check=True)  # noqa: S603
    found = COUNT.search(done.stderr)
    if found is None:
        sys.exit(f"no count in what {' '.join(command)} said:\n{done.stderr}")
    return 100 * float(found[1]), int(found[2])


def main() -> None:
    """Crawl and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--topics", nargs="+", default=["food"])
    parser.add_argument("--output", type=Path, help="write the table there as well")
    options = parser.parse_args()
    lines = [
        "| topic | web | one at a time, HR % / domains | 16 | difference |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    differences = []
    for topic in options.topics:
        for seed in options.seeds:
            one, many = (crawled(topic, seed, options.pages, n) for n in (1, 16))
            differences.append(many[0] - one[0])
            cells = [topic, str(seed), *(f"{hr:.1f} / {domains:,}" for hr, domains in (one, many))]
            lines.append(f"| {' | '.join(cells)} | {differences[-1]:+.1f} |")
            print(lines[-1], flush=True)
    mean = statistics.mean(differences)
    error = statistics.stdev(differences) / len(differences) ** 0.5 if differences[1:] else 0.0
    lines += ["", f"Mean difference {mean:+.1f} points, standard error {error:.1f}."]
    print(lines[-1])
    if options.output is not None:
        options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
