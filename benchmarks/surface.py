"""Query selection for the deep web: every selector, kind of search and simulated database.

    OMP_NUM_THREADS=1 python benchmarks/surface.py [--seeds 0 1 2 3 4] [--queries 120] [--only TEXT]

Appends a row to results/surface/simulation.csv when a crawl ends, then writes simulation.md and
simulation.svg from all rows. Crawls that are in the CSV are not repeated.
"""

from __future__ import annotations

import argparse
import csv
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Final

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy import stats

from tres_scrapy.lab.surface_selectors import (
    GenericFrequency,
    Paper,
    Random,
    YieldRatio,
    Zipf,
    recaptured_total,
    spelling_features,
)
from tres_scrapy.lab.surface_simulation import Oracle, Search, SimulatedDatabase, surface
from tres_scrapy.surface.acquired import Ints
from tres_scrapy.surface.keyword_feature import statistical_features
from tres_scrapy.surface.selector import Recapture, Selector, Trials

RESULTS = Path(__file__).parent / "results" / "surface"
FIELDS = ("setting", "selector", "seed", "empty", "requests", "acquired")
SETTINGS: Final = {
    "titles only, cap 100": Search(full_text=False, cap=100),
    "titles only, no cap": Search(full_text=False, cap=None),
    "full text, cap 100": Search(full_text=True, cap=100),
    "full text, no cap": Search(full_text=True, cap=None),
}
TITLES_100, TITLES, FULL_100, FULL = SETTINGS
RANDOM, GF, ZIPF, PAPER = "Random", "Generic Frequency", "Zipf-Mandelbrot", "Eq. 5 to 7 literally"
RECAPTURE, RATIO, KNOWN = "recapture", "yield ratio", "yield ratio, size known"
ORACLE = "greedy oracle"
NO_KIND = "yield ratio, no part of speech"
RECAPTURED, STATISTICAL = "yield ratio, size recaptured", "yield ratio, statistical features only"
COLOURS: Final = {
    RANDOM: "#8c8c8c", GF: "#e69f00", ZIPF: "#009e73", PAPER: "#cc79a7", RECAPTURE: "#d55e00",
    RATIO: "#0072b2", KNOWN: "#56b4e9", ORACLE: "#333333",
}  # fmt: skip
Answers = Mapping[str, Ints]
Rows = dict[tuple[str, str], dict[int, NDArray[np.int64]]]


def selectors(
    database: SimulatedDatabase, search: Search, answers: Answers, seed: int
) -> dict[str, Callable[[], Selector]]:
    """Return functions that create each selector."""
    size = len(database)

    def true_size(trials: Trials, acquired: int) -> float:
        return float(size)

    return {
        RANDOM: lambda: Random(seed),
        GF: GenericFrequency,
        ZIPF: Zipf,
        PAPER: lambda: Paper(true_size),
        RECAPTURE: Recapture,
        RATIO: YieldRatio,
        KNOWN: lambda: YieldRatio(true_size, cap=search.cap),
        RECAPTURED: lambda: YieldRatio(recaptured_total),
        NO_KIND: lambda: YieldRatio(describe=spelling_features),
        STATISTICAL: lambda: YieldRatio(describe=statistical_features),
        ORACLE: lambda: Oracle(answers, size),
    }


def crawl(seed: int, queries: int, path: Path, only: str) -> None:
    """Crawl the database of a seed with every selector that is missing in the file."""
    done = {(row["setting"], row["selector"], row["seed"]) for row in read(path)}
    database = SimulatedDatabase(seed)
    for setting, search in SETTINGS.items():
        answers = database.index(search)
        for name, make in selectors(database, search, answers, seed).items():
            if (setting, name, str(seed)) in done or only not in f"{setting}, {name}":
                continue
            outcome = surface(database, answers, make(), queries, seed=seed)
            curve = " ".join(map(str, outcome.acquired.tolist()))
            row = (setting, name, seed, outcome.empty, outcome.requests, curve)
            append(path, row)
            print(f"{setting}, {name}, database {seed}: {outcome.acquired[-1]} records", flush=True)


def append(path: Path, row: tuple[object, ...]) -> None:
    """Write one row, and the names of the fields before the first."""
    new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(FIELDS)
        writer.writerow(row)


def read(path: Path) -> list[dict[str, str]]:
    """Return the rows of a results file, [] if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def curves(rows: list[dict[str, str]]) -> Rows:
    """Return the number of records after each query, by setting and selector, and by seed."""
    found: Rows = defaultdict(dict)
    for row in rows:
        curve = np.array(row["acquired"].split(), np.int64)
        found[row["setting"], row["selector"]][int(row["seed"])] = curve
    return found


def at(found: Rows, setting: str, selector: str, query: int) -> float:
    """Return the mean number of records after a query."""
    return mean(float(curve[query - 1]) for curve in found[setting, selector].values())


def interval(values: list[float]) -> float:
    """Return half the 95 % confidence interval of a mean, 0 for a single value."""
    if len(values) < 2:
        return 0.0
    n = len(values)
    return float(stats.t.ppf(0.975, n - 1) * stdev(values) / np.sqrt(n))


def bands(found: Rows) -> list[tuple[str, float, float]]:
    """Return the acceptance figures: description, measured value and required value."""

    def records(setting: str, selector: str, query: int = 120) -> float:
        return at(found, setting, selector, query)

    def ratio(setting: str, selector: str, rival: str, query: int = 120) -> float:
        return records(setting, selector, query) / records(setting, rival, query)

    return [
        (f"{TITLES_100}: recapture", records(TITLES_100, RECAPTURE), 5900),
        (f"{TITLES_100}: recapture against GF", ratio(TITLES_100, RECAPTURE, GF), 1.2),
        (f"{TITLES}: recapture", records(TITLES, RECAPTURE), 8000),
        (f"{TITLES}: recapture against GF", ratio(TITLES, RECAPTURE, GF), 1.08),
        (f"{FULL_100}: recapture", records(FULL_100, RECAPTURE), 5400),
        (f"{FULL_100}: recapture against Zipf", ratio(FULL_100, RECAPTURE, ZIPF), 1.05),
        (f"{FULL}: recapture", records(FULL, RECAPTURE), 9900),
        (f"{TITLES_100}: yield ratio", records(TITLES_100, RATIO), 5900),
        (f"{TITLES_100}: against Generic Frequency", ratio(TITLES_100, RATIO, GF), 1.2),
        (f"{TITLES_100}: against Zipf", ratio(TITLES_100, RATIO, ZIPF), 5),
        (f"{TITLES_100}: against Random", ratio(TITLES_100, RATIO, RANDOM), 5),
        (f"{TITLES}: yield ratio", records(TITLES, RATIO), 8000),
        (f"{TITLES}: against Generic Frequency", ratio(TITLES, RATIO, GF), 1.08),
        (f"{FULL_100}: yield ratio, size known", records(FULL_100, KNOWN), 5400),
        (f"{FULL_100}: against Zipf", ratio(FULL_100, KNOWN, ZIPF), 1.05),
        (f"{FULL_100}: against Generic Frequency", ratio(FULL_100, KNOWN, GF), 3),
        (f"{FULL}: yield ratio", records(FULL, RATIO), 9900),
        (f"{FULL}: after 30 queries, against GF", ratio(FULL, RATIO, GF, 30), 0.95),
    ]


def table(rows: list[dict[str, str]], found: Rows) -> str:
    """Return the results as Markdown."""
    empty: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        empty[row["setting"], row["selector"]].append(float(row["empty"]))
    text = "# Query selection on simulated databases\n\n"
    text += "Records acquired of 10,000 after 30 / 60 / 120 queries, mean, 95 % interval at 120; "
    text += "empty: queries without an answer. Made by `benchmarks/surface.py`.\n"
    for setting in SETTINGS:
        text += f"\n## {setting[0].upper()}{setting[1:]}\n\n"
        text += "| selector | 30 | 60 | 120 | empty | databases |\n|---|---|---|---|---|---|\n"
        for (where, selector), of_seed in found.items():
            if where != setting:
                continue
            thirty, sixty, end = (at(found, setting, selector, q) for q in (30, 60, 120))
            half = interval([float(curve[-1]) for curve in of_seed.values()])
            text += f"| {selector} | {thirty:,.0f} | {sixty:,.0f} | {end:,.0f} ± {half:,.0f} "
            text += f"| {mean(empty[where, selector]):.0f} | {len(of_seed)} |\n"
    text += "\n## What was asked of it\n\n| figure | measured | at least | |\n|---|---|---|---|\n"
    for what, measured, least in bands(found):
        verdict = "holds" if measured >= least else "MISSED"
        text += f"| {what} | {measured:,.4g} | {least:,.4g} | {verdict} |\n"
    return text


def plot(found: Rows, path: Path) -> None:
    """Plot the number of records after each query, one panel per kind of search."""
    mpl.rcParams.update({"svg.hashsalt": "tres", "font.size": 9, "axes.grid": True,
                         "grid.alpha": 0.25, "axes.spines.top": False,
                         "axes.spines.right": False})  # fmt: skip
    figure = Figure(figsize=(9, 6.5), layout="constrained")
    for axes, setting in zip(figure.subplots(2, 2, sharey=True).flat, SETTINGS, strict=True):
        for name, colour in COLOURS.items():
            if (setting, name) not in found:
                continue
            runs = np.array(list(found[setting, name].values()))
            queries = np.arange(1, runs.shape[1] + 1)
            dashes = "--" if name == ORACLE else "-"
            axes.plot(queries, runs.mean(axis=0), color=colour, label=name, linestyle=dashes)
            axes.fill_between(queries, runs.min(0), runs.max(0), color=colour, alpha=0.12, lw=0)
        axes.set(title=setting, xlabel="queries", ylim=(0, 10_200), xlim=(0, runs.shape[1]))
        axes.label_outer()
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.supylabel("records acquired of 10,000 (mean; shade: least and most)")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def main() -> None:
    """Do the missing crawls and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2, 3, 4])
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--only", default="", help="only if this is in `setting, selector`")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "simulation.csv"
    for seed in options.seeds:
        crawl(seed, options.queries, path, options.only)
    rows = read(path)
    found = curves(rows)
    (options.output / "simulation.md").write_text(table(rows, found), encoding="utf-8")
    plot(found, options.output / "simulation.svg")


if __name__ == "__main__":
    main()
