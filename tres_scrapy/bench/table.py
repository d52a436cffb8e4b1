"""Markdown tables of the results, in the form of Tables 3 and 4 of the paper."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import Final

from tres_scrapy.bench.mean import (
    ORACLE,
    TRES,
    VARIANTS,
    Cell,
    Cells,
    Key,
    Spread,
    caps_of,
    pace_of,
    policies_of,
    topics_of,
)

NAMES: Final = {
    "tres": "TRES",
    "tree_random": "Tree-Random",
    "random": "Random",
    "synchronous": "Synchronous",
    "tres_async": "TRES_Async",
    "async": "Async",
    "ache": "ACHE",
    "seedfinder": "SeedFinder",
    "sb_classifier": "SB-CLASSIFIER",
    "best_first": "Best-First",
    "breadth_first": "Breadth-First",
    "oracle": "Oracle",
    "lookahead": "Lookahead",
    "tres_svm": "TRES_SVM",
    "tres_nh": "TRES_NH",
}  # as in the paper


def name_of(policy: str, cap: str = "none") -> str:
    """Return the name of a crawler with its MAX, such as TRES_10."""
    name = NAMES.get(policy, policy)
    return name if cap == "none" else f"{name}_{cap}"


def crawler_table(cells: Cells) -> list[str]:
    """Return Table 3: harvest rate and relevant domains of every crawler but the variants."""
    return _score_table(cells, [name for name in policies_of(cells) if name not in VARIANTS])


def variant_table(cells: Cells) -> list[str]:
    """Return Table 4: TRES and its variants; [] without variants."""
    variants = [name for name in policies_of(cells) if name in VARIANTS]
    return _score_table(cells, [TRES, *variants]) if variants else []


def ratio_table(cells: Cells) -> list[str]:
    """Return the relevant pages as a share of the oracle's; [] without an oracle."""

    def text(key: Key) -> str:
        oracle = cells.get(key._replace(policy=ORACLE))
        shares = cells[key].shares(oracle) if oracle and key in cells else []
        return _spread(Spread.of(shares), 3) + _few(shares, _seeds(cells, key)) if shares else ""

    policies = [policy for policy in policies_of(cells) if policy != ORACLE]
    if len(policies) == len(policies_of(cells)):
        return []
    return _table(["", *topics_of(cells)], _rows(cells, policies, text))


def pareto_table(cells: Cells) -> list[str]:
    """Return the crawlers that TRES dominates, and where the others are better."""
    rows = []
    for topic, cap in product(topics_of(cells), caps_of(cells)):
        tres, rivals = cells.get(Key(topic, TRES, cap)), _rivals(cells, topic, cap)
        if tres is not None and rivals:
            beaten, others = [], []
            for rival, cell in rivals.items():
                name = rival + _few(cell.beside(tres).results, tres.seeds | cell.seeds)
                if tres.dominates(cell):
                    beaten.append(name)
                else:
                    others.append(f"{name} ({_advantage(cell, tres)})")
            rows.append([topic, cap, ", ".join(beaten), ", ".join(others)])
    return _table(["topic", "MAX", "dominated by TRES", "not dominated"], rows) if rows else []


def pace_table(cells: Cells) -> list[str]:
    """Return the milliseconds of a choice; [] if not measured."""
    caps, rows = caps_of(cells), []
    for policy in policies_of(cells):
        row = []
        for cap in caps:
            chosen = [cells[key] for key in cells if (key.policy, key.cap) == (policy, cap)]
            pace = pace_of(result for cell in chosen for result in cell.results)
            row.append(f"{pace.milliseconds:.3g} ({pace.frontier:,.0f})" if pace else "")
        if any(row):
            rows.append([name_of(policy), *row])
    return _table(["", *(f"MAX {cap}" for cap in caps)], rows) if rows else []


def _score_table(cells: Cells, policies: Sequence[str]) -> list[str]:
    def text(key: Key) -> str:
        if key not in cells:
            return ""
        seeds = _seeds(cells, key)
        keys = [key._replace(policy=name) for name in policies if name != ORACLE]
        found = [cells[each] for each in keys if each in cells]
        rivals = [] if key.policy == ORACLE else [each for each in found if each.seeds == seeds]
        return _score(cells[key], rivals, seeds)

    return _table(["", *topics_of(cells)], _rows(cells, policies, text))


def _score(cell: Cell, rivals: Sequence[Cell], seeds: set[int]) -> str:
    """Return "harvest rate / domains", each bold if the cell is one of `rivals` and the best."""
    harvest, domains = _spread(cell.harvest, 1), _spread(cell.domains, 0)
    if cell in rivals and cell.reach == max(rival.reach for rival in rivals):
        harvest = f"**{harvest}**"
    if cell in rivals and cell.domains.mean == max(rival.domains.mean for rival in rivals):
        domains = f"**{domains}**"
    return f"{harvest} / {domains}{_few(cell.results, seeds)}{_end(cell)}"


def _end(cell: Cell) -> str:
    """Return after how many pages links ran out, and for how many seeds if not for all."""
    if not cell.ran_out:
        return ""
    all_did = len(cell.ran_out) == len(cell.results)
    of_some = "" if all_did else f" ({len(cell.ran_out)} of {len(cell.results)})"
    return f" †{statistics.fmean(cell.ran_out):,.0f}{of_some}"


def _seeds(cells: Cells, key: Key) -> set[int]:
    """Return the seeds of all crawlers for a topic and MAX."""
    alike = (cell for other, cell in cells.items() if other._replace(policy=key.policy) == key)
    return set().union(*(cell.seeds for cell in alike))


def _few(values: Sequence[object], seeds: set[int]) -> str:
    """Return the number of seeds, or "" if no other crawler has more."""
    return "" if len(values) == len(seeds) else f" (n = {len(values)})"


def _rivals(cells: Cells, topic: str, cap: str) -> dict[str, Cell]:
    """Return the crawlers that TRES is compared with, by name."""
    keys = (Key(topic, name, cap) for name in policies_of(cells) if name not in {TRES, ORACLE})
    return {name_of(key.policy): cells[key] for key in keys if key in cells}


def _advantage(cell: Cell, tres: Cell) -> str:
    """Return where a crawler is better than TRES on the seeds that both have."""
    cell, tres = cell.beside(tres), tres.beside(cell)
    pairs = {
        "harvest": (cell.reach, tres.reach, "{:.1f} > {:.1f}"),
        "domains": (cell.domains.mean, tres.domains.mean, "{:,.1f} > {:,.1f}"),
    }
    ahead = [f"{name} {form.format(a, b)}" for name, (a, b, form) in pairs.items() if a > b]
    return ", ".join(ahead) or "the same"


def _rows(cells: Cells, policies: Sequence[str], text: Callable[[Key], str]) -> Iterator[list[str]]:
    """Yield a row for each MAX and policy, with a cell for each topic; skip empty rows."""
    for cap in caps_of(cells):
        for policy in policies:
            row = [text(Key(topic, policy, cap)) for topic in topics_of(cells)]
            if any(row):
                yield [name_of(policy, cap), *row]


def _spread(spread: Spread, digits: int) -> str:
    return " ± ".join(f"{value:,.{digits}f}" for value in spread if value is not None)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
