"""Show what the dial `breadth` trades: harvest rate against domains with relevant pages.

    python benchmarks/breadth.py [--topics food sports hardware] [--webs 51 52] [--max none 10]
        [--pages 1500] [--breadth 0 .05 .2 .5 1] [--policies best_first ...] [--results DIR]

Each crawl is simulated on a synthetic web, which counts. Crawls that results/breadth.csv holds are
not repeated. Prints the means over webs with standard errors, names each rival that has more of
both than the line between the points of the dial, and draws results/breadth.svg.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # read when NumPy is imported

import matplotlib as mpl
import numpy as np
from comparing.simulation import World
from comparing.table import name_of
from matplotlib.figure import Figure
from plot_style import COLOURS, MARKERS, NO_METADATA, STYLE

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.registry import kind_of

RESULTS = Path(__file__).parent / "results"
RIVALS = ("best_first", "breadth_first", "rivals:ACHE")
DIAL = "tres"


class Crawled(NamedTuple):
    """One crawl: harvest rate in %, and domains with relevant pages."""

    topic: str
    web: int
    cap: str
    policy: str
    breadth: str  # empty but for TRES
    harvest: float
    domains: int


class Point(NamedTuple):
    """Means over webs, with standard errors."""

    harvest: float
    harvest_error: float
    domains: float
    domains_error: float


def crawls(options: argparse.Namespace, known: list[Crawled]) -> Iterator[Crawled]:
    """Yield the crawls that are not known yet, as they end; a web is made once."""
    done = {each[:5] for each in known}
    kinds = [(DIAL, f"{each:g}") for each in options.breadth] + [(r, "") for r in options.policies]
    for topic in options.topics:
        for web in options.webs:
            worlds: dict[str, World] = {}
            for cap in options.max:
                for policy, breadth in kinds:
                    if (topic, web, cap, policy, breadth) in done:
                        continue
                    settings = {
                        "TRES_WEB": "synthetic",
                        "TRES_TOPIC": topic,
                        "TRES_WEB_SEED": web,
                        "TRES_RANDOM_SEED": web,
                        "TRES_MAX_PER_DOMAIN": cap,
                        "TRES_POLICY": policy,
                        "TRES_PAGES": options.pages,
                    } | ({"TRES_BREADTH": breadth} if breadth else {})
                    config = Config.from_settings(settings)
                    classifier = kind_of(policy).classifier
                    if classifier not in worlds:
                        worlds[classifier] = World(config, user_agent="tres")
                    found = worlds[classifier].crawl(config)
                    harvest = round(100 * found.relevant / found.pages, 2)
                    yield Crawled(topic, web, cap, policy, breadth, harvest, found.domains)


def points(found: list[Crawled]) -> dict[tuple[str, str], dict[tuple[str, str], Point]]:
    """Return the means of crawls by topic and MAX, then by policy and breadth."""
    groups: dict[tuple[str, str], dict[tuple[str, str], list[Crawled]]] = {}
    for each in found:
        group = groups.setdefault((each.topic, each.cap), defaultdict(list))
        group[each.policy, each.breadth].append(each)
    return {
        panel: {kind: _point(some) for kind, some in kinds.items()}
        for panel, kinds in groups.items()
    }


def above(dial: list[Point], rival: Point) -> bool:
    """Return whether a rival has more of both than the line between the points of the dial."""
    front = sorted((each.domains, each.harvest) for each in dial)
    domains, harvest = np.array(front).T
    reached = np.maximum.accumulate(harvest[::-1])[::-1]  # the most with at least as many domains
    return bool(rival.harvest > np.interp(rival.domains, domains, reached, right=0.0))


def draw(panels: dict[tuple[str, str], dict[tuple[str, str], Point]], file: Path) -> None:
    """Draw a panel for each topic and MAX."""
    topics = list(dict.fromkeys(topic for topic, _ in panels))
    caps = list(dict.fromkeys(cap for _, cap in panels))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.8 * len(topics), 2.9 * len(caps)), layout="constrained")
        axes = figure.subplots(len(caps), len(topics), squeeze=False)
        for (topic, cap), kinds in panels.items():
            panel = axes[caps.index(cap)][topics.index(topic)]
            panel.set_title(f"{topic}, MAX {cap}")
            dial = sorted((float(b), p) for (policy, b), p in kinds.items() if policy == DIAL)
            panel.plot(
                [p.domains for _, p in dial],
                [p.harvest for _, p in dial],
                "o-",
                color=COLOURS[0],
                label="TRES, breadth as written",
            )
            for breadth, p in dial:
                panel.annotate(f"{breadth:g}", (p.domains, p.harvest), (3, 3), **LABEL)
            rivals = [(policy, p) for (policy, _), p in kinds.items() if policy != DIAL]
            for number, (policy, p) in enumerate(rivals, start=1):
                panel.errorbar(
                    p.domains,
                    p.harvest,
                    p.harvest_error,
                    p.domains_error,
                    fmt=MARKERS[number % len(MARKERS)],
                    color=COLOURS[number % len(COLOURS)],
                    label=name_of(policy),
                )
            panel.set_xlabel("domains with relevant pages")
            panel.set_ylabel("harvest rate, %")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        figure.savefig(file, format="svg", metadata=NO_METADATA)


LABEL = {"textcoords": "offset points", "fontsize": 7}


def main() -> None:
    """Crawl, print the tables and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--topics", nargs="+", default=["food", "sports", "hardware"])
    parser.add_argument("--webs", type=int, nargs="+", default=[51, 52])
    parser.add_argument("--max", nargs="+", default=["none", "10"])
    parser.add_argument("--pages", type=int, default=1500)
    parser.add_argument("--breadth", type=float, nargs="+", default=[0, 0.05, 0.2, 0.5, 1])
    parser.add_argument("--policies", nargs="*", default=RIVALS)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    file = options.results / "breadth.csv"
    known = _read(file)
    with file.open("a", newline="", encoding="utf-8") as output:
        writer = csv.writer(output, lineterminator="\n")
        if not known:
            writer.writerow(Crawled._fields)
        for each in crawls(options, known):
            known.append(each)
            writer.writerow(each)
            output.flush()
            print(*each, flush=True)
    panels = points(known)
    for (topic, cap), kinds in panels.items():
        print(f"\n{topic}, MAX {cap}\n\n| | harvest rate, % | domains | above the dial |")
        print("|---|---|---|---|")
        dial = [point for (policy, _), point in kinds.items() if policy == DIAL]
        for (policy, breadth), p in kinds.items():
            name = f"breadth={breadth}" if policy == DIAL else name_of(policy)
            beats = "yes" if policy != DIAL and above(dial, p) else ""
            harvest = f"{p.harvest:.1f} ± {p.harvest_error:.1f}"
            print(f"| {name} | {harvest} | {p.domains:.0f} ± {p.domains_error:.0f} | {beats} |")
    draw(panels, file.with_suffix(".svg"))


def _point(some: list[Crawled]) -> Point:
    harvest, domains = [each.harvest for each in some], [float(each.domains) for each in some]
    return Point(mean(harvest), _error(harvest), mean(domains), _error(domains))


def _error(values: list[float]) -> float:
    return stdev(values) / len(values) ** 0.5 if values[1:] else 0.0


def _read(file: Path) -> list[Crawled]:
    """Return the crawls of an earlier run."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as lines:
        return [
            Crawled(
                row["topic"],
                int(row["web"]),
                row["cap"],
                row["policy"],
                row["breadth"],
                float(row["harvest"]),
                int(row["domains"]),
            )
            for row in csv.DictReader(lines)
        ]


if __name__ == "__main__":
    main()
