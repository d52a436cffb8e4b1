"""Compare refresh policies over HTTP on the changing web, whose server knows the truth.

    python benchmarks/refresh_http.py [--pages 2000] [--budget 4000] [--seconds 300] [--seeds 0 1 2]
        [--policies static adaptive round-robin uniform] [--jobs 3]

Each run is `scrapy crawl refresh`, through the proxy of a web whose pages change once a year to a
hundred times a day. Ten days of that web pass while the budget is spent. Time advances by requests
on both sides, so the speed of the machine does not affect results. The log and the history of the
web give the time-averaged freshness and the false reports of changes. Appends to
results/refresh/http.csv when a run ends, continues there after an interrupt, and writes
results/refresh/http.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tres_scrapy.lab.webs.changing import ChangingWeb, deliveries, freshness

PROJECT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "refresh"
DAYS = 10
POLICIES = ("static", "adaptive", "round-robin", "uniform")
FIELDS = (
    "policy",
    "seed",
    "pages",
    "budget",
    "seconds",
    "requests",
    "freshness",
    "not_modified",
    "changed",
    "false_changed",
    "missed",
    "hidden",
    "errors",
    "gone",
)


def main() -> None:
    """Do the missing runs and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=int, default=2_000)
    parser.add_argument("--budget", type=int, default=4_000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--policies", nargs="+", default=list(POLICIES))
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "http.csv"
    rows = _read(path)
    done = {(row["policy"], int(row["seed"])) for row in rows}
    todo = [
        (policy, seed)
        for seed in options.seeds
        for policy in options.policies
        if (policy, seed) not in done
    ]
    with ThreadPoolExecutor(options.jobs) as pool:
        for row in pool.map(lambda what: run(what[0], what[1], options), todo):
            rows.append({name: str(value) for name, value in row.items()})
            print(json.dumps(row), flush=True)
            _write(path, rows)
    (options.results / "http.md").write_text(table(rows), encoding="utf-8")


def run(policy: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    """Run a policy in its own directory and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        return _run(Path(folder), policy, seed, options)


def _run(place: Path, policy: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    day = options.seconds / DAYS
    common = ["--pages", options.pages, "--day", day, "--seed", seed]
    collection, log = place / "pages.jsonl", place / "web.log"
    _call("-m", "tres_scrapy.cli.main", "web", "changing", *common, "--collection", collection)
    own = ["--log", log, "--epoch", 0, "--tick", options.seconds / options.budget]
    server = subprocess.Popen(  # noqa: S603 - our own program
        [
            sys.executable,
            "-m",
            "tres_scrapy.lab.webs.server",
            "changing",
            *map(str, [*common, *own]),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
    )
    assert server.stdout is not None
    assert server.stdin is not None
    port = json.loads(server.stdout.readline())["port"]
    _call(
        "-m",
        "scrapy",
        "crawl",
        "refresh",
        "-a",
        f"collection={collection}",
        "-a",
        f"policy={policy}",
        "-a",
        f"budget={options.budget}",
        "-a",
        f"horizon={options.seconds}s",
        "-a",
        "min_age=0",
        "-a",
        f"retry={day / 4}",
        "-a",
        f"random_seed={seed}",
        "-s",
        "DOWNLOAD_DELAY=0",
        "-s",
        "LOG_LEVEL=ERROR",
        "-s",
        "CONCURRENT_REQUESTS_PER_DOMAIN=4",
        "-a",
        "stepped=1",
        proxy=f"http://127.0.0.1:{port}",
    )
    server.stdin.close()
    server.wait()
    return _figures(place, policy, seed, options, day)


def _figures(
    place: Path, policy: str, seed: int, options: argparse.Namespace, day: float
) -> dict[str, Any]:
    rows = _lines(place / "web.log")
    items = _lines(place / "pages.refresh.jsonl")
    fetches = [row for row in rows if "day" in row]
    start = fetches[0]["day"]
    web = ChangingWeb(options.pages, seed=seed, day=day, epoch=0)
    shares = freshness(web, deliveries(fetches), start, start + DAYS)
    verdicts = _verdicts(fetches, items)
    return {
        "policy": policy,
        "seed": seed,
        "pages": options.pages,
        "budget": options.budget,
        "seconds": options.seconds,
        "requests": len(fetches),
        "freshness": round(float(np.nanmean(shares)), 4),
        "not_modified": sum(row["status"] == 304 for row in fetches),
        "changed": sum(item["change"] == "changed" for item in items),
        **verdicts,
        "errors": sum(item["change"] == "error" for item in items),
        "gone": sum(item["change"] == "gone" for item in items),
    }


def _verdicts(fetches: Iterable[dict[str, Any]], items: Iterable[dict[str, Any]]) -> dict[str, int]:
    """Return the numbers of wrong verdicts: false changes and missed changes.

    Hidden changes are those for which the server answered 304.
    """
    answers: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in fetches:
        answers[row["url"]].append(row)
    wrong = {"false_changed": 0, "missed": 0, "hidden": 0}
    versions: dict[str, int] = {}
    for item in items:
        row = answers[item["url"]].pop(0)
        if "version" not in row:
            continue
        real = versions.get(item["url"], 0) != row["version"]
        if row["status"] == 304:
            wrong["hidden"] += real
            continue
        versions[item["url"]] = row["version"]
        wrong["false_changed"] += item["change"] == "changed" and not real
        wrong["missed"] += item["change"] in {"minor", "unchanged"} and real
    return wrong


def table(rows: list[dict[str, str]]) -> str:
    """Return the results as a page."""
    first = rows[0]
    lines = [
        "# Refresh over HTTP",
        "",
        f"`python benchmarks/refresh_http.py`: {int(first['pages']):,} pages on the changing web, "
        f"{int(first['budget']):,} requests in ten of its days, "
        "seeds " + ", ".join(sorted({row["seed"] for row in rows})) + ". Freshness is the share of "
        "the time that a copy was what the page said, mean of all pages, by the server's truth.",
        "",
        "| policy | freshness, % | by seed | 304 | changed | false | missed | hidden by a 304 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    ranked = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        fresh = [100 * float(row["freshness"]) for row in own]
        sums = [sum(int(row[name]) for row in own) for name in FIELDS[7:12]]
        cells = " | ".join(f"{value:,}" for value in sums)
        seeds = " / ".join(f"{value:.1f}" for value in fresh)
        mean = float(np.mean(fresh))
        ranked.append((mean, f"| {policy} | {mean:.2f} | {seeds} | {cells} |"))
    return "\n".join([*lines, *(text for _, text in sorted(ranked, reverse=True)), ""])


def _call(*arguments: object, proxy: str = "") -> None:
    environment = dict(os.environ) | ({"http_proxy": proxy} if proxy else {})
    subprocess.run(  # noqa: S603 - our own program
        [sys.executable, *map(str, arguments)],
        cwd=PROJECT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: Iterable[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
