"""The means of Table 3 of the paper, over starts and seeds, and their Markdown tables."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple, Self

from comparing.result import Result
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.registry import POLICIES

TRES: Final = "tres"
ORACLE: Final = "oracle"
LOOKAHEAD: Final = "rivals:LOOKAHEAD"  # of benchmarks/
CEILINGS: Final = (ORACLE, LOOKAHEAD)  # they know the labels of the web
NAMES: Final = {
    "tres": "TRES",
    "tree_random": "Tree-Random",
    "random": "Random",
    "best_first": "Best-First",
    "breadth_first": "Breadth-First",
    "oracle": "Oracle",
    LOOKAHEAD: "Lookahead",
}  # as in the papers
COUNTS: Final = (100, 200, 400)  # fetches after which the relevant pages are counted

Trials = set[tuple[str, int]]  # starts and seeds


class Spread(NamedTuple):
    """A mean and the sample standard deviation, which is None for a single value."""

    mean: float
    deviation: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Self:
        """Return the spread of one value or more."""
        deviation = statistics.stdev(values) if len(values) > 1 else None
        return cls(statistics.fmean(values), deviation)


class Key(NamedTuple):
    """Topic, policy and MAX: what the runs of a cell have in common."""

    topic: str
    policy: str
    cap: str


@dataclass(frozen=True)
class Cell:
    """The results of one policy, topic and MAX, one for each start and seed."""

    results: tuple[Result, ...]

    @property
    def harvest(self) -> Spread:
        """The harvest rate in per cent."""
        return Spread.of([100 * result.harvest for result in self.results])

    @property
    def domains(self) -> Spread:
        """The number of domains with a relevant page."""
        return Spread.of([result.domains for result in self.results])

    @property
    def reach(self) -> float:
        """The mean share of relevant pages among the pages asked for, in per cent.

        It is lower than the harvest rate if links ran out, so ending early is no advantage.
        """
        return statistics.fmean(100 * each.relevant / each.run.pages for each in self.results)

    @property
    def trials(self) -> set[tuple[str, int]]:
        """The starts and seeds that have results."""
        return {result.run.trial for result in self.results}

    @property
    def ran_out(self) -> list[int]:
        """The numbers of pages of the crawls in which links ran out."""
        return [result.pages for result in self.results if result.exhausted]

    def shares(self, other: Cell) -> list[float]:
        """Return the area as a share of the other's, for each common trial."""
        others = {result.run.trial: result.area for result in other.results}
        return [
            result.area / others[result.run.trial]
            for result in self.results
            if others.get(result.run.trial)
        ]


Cells = dict[Key, Cell]


def cells_of(results: Iterable[Result]) -> Cells:
    """Return the results by topic, policy and MAX."""
    found: defaultdict[Key, list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda result: result.run):
        found[Key(result.run.topic, result.run.policy, result.run.cap)].append(result)
    return {key: Cell(tuple(results)) for key, results in found.items()}


def rank_of(policy: str) -> int:
    """Return the place of a policy in the registry; removed policies come last."""
    names = list(POLICIES)
    return names.index(policy) if policy in names else len(names)


def policies_of(cells: Cells) -> list[str]:
    """Return the policies that have results, in the order of the registry."""
    return sorted({key.policy for key in cells}, key=rank_of)


def caps_of(cells: Cells) -> list[str]:
    """Return the values of MAX that have results, the loosest first."""
    return sorted({key.cap for key in cells}, key=_tightness)


def topics_of(cells: Cells) -> list[str]:
    """Return the topics that have results."""
    return sorted({key.topic for key in cells})


def _tightness(text: str) -> tuple[int, ...]:
    """Return a key that sorts none before 100, and 5 before 5_2."""
    cap = Cap.parse(text)
    return (-cap.first, -cap.last) if cap else ()


def name_of(policy: str, cap: str = "none") -> str:
    """Return the name of a crawler with its MAX, such as TRES_10."""
    name = NAMES.get(policy, policy.rpartition(":")[2])
    return name if cap == "none" else f"{name}_{cap}"


def crawler_table(cells: Cells) -> list[str]:
    """Return Table 3: harvest rate and relevant domains of every crawler."""

    def text(key: Key) -> str:
        if key not in cells:
            return ""
        trials = _trials(cells, key)
        keys = [key._replace(policy=name) for name in policies if name not in CEILINGS]
        found = [cells[each] for each in keys if each in cells]
        rivals = [each for each in found if each.trials == trials]
        return _score(cells[key], [] if key.policy in CEILINGS else rivals, trials)

    policies = policies_of(cells)
    return _table(["", *topics_of(cells)], _rows(cells, policies, text))


def found_table(cells: Cells, topic: str, pages: int) -> list[str]:
    """Return how many relevant pages the first fetches found; [] without results.

    `pages` is the number of pages that the crawls were asked for.
    """
    counts = [*(each for each in COUNTS if each < pages), pages]
    rows = [
        _found_row(cells, Key(topic, policy, cap), counts)
        for cap, policy in product(caps_of(cells), policies_of(cells))
        if Key(topic, policy, cap) in cells
    ]
    head = ["", "runs", *(f"{each} fetches" for each in counts), f"{pages} pages", "area"]
    return _table(head, rows) if rows else []


def _found_row(cells: Cells, key: Key, counts: Sequence[int]) -> list[str]:
    cell, ceiling = cells[key], cells.get(key._replace(policy=LOOKAHEAD))
    found = [[result.found_after(each) for result in cell.results] for each in counts]
    every = [result.relevant for result in cell.results]
    shares = cell.shares(ceiling) if ceiling else []
    area = _range(shares, 3) + _few(shares, cell.trials) if shares else ""
    name, number = name_of(key.policy, key.cap), str(len(cell.results))
    return [name, number, *(_range(each, 1) for each in (*found, every)), area]


def _range(values: Sequence[int] | Sequence[float], digits: int) -> str:
    """Return the mean with the lowest and the highest value; one value if all are the same."""
    ends = (min(values), max(values))
    low, high = (f"{end}" if isinstance(end, int) else f"{end:.{digits}f}" for end in ends)
    return low if low == high else f"{statistics.fmean(values):.{digits}f} ({low} to {high})"


def _score(cell: Cell, rivals: Sequence[Cell], trials: Trials) -> str:
    """Return "harvest rate / domains", each bold if the cell is one of `rivals` and the best."""
    harvest, domains = _spread(cell.harvest, 1), _spread(cell.domains, 0)
    if cell in rivals and cell.reach == max(rival.reach for rival in rivals):
        harvest = f"**{harvest}**"
    if cell in rivals and cell.domains.mean == max(rival.domains.mean for rival in rivals):
        domains = f"**{domains}**"
    return f"{harvest} / {domains}{_few(cell.results, trials)}{_end(cell)}"


def _end(cell: Cell) -> str:
    """Return after how many pages links ran out, and in how many runs if not for all."""
    if not cell.ran_out:
        return ""
    all_did = len(cell.ran_out) == len(cell.results)
    of_some = "" if all_did else f" ({len(cell.ran_out)} of {len(cell.results)})"
    return f" †{statistics.fmean(cell.ran_out):,.0f}{of_some}"


def _trials(cells: Cells, key: Key) -> Trials:
    """Return the starts and seeds of all crawlers for a topic and MAX."""
    alike = (cell for other, cell in cells.items() if other._replace(policy=key.policy) == key)
    return set().union(*(cell.trials for cell in alike))


def _few(values: Sequence[object], trials: Trials) -> str:
    """Return the number of runs, or "" if no other crawler has more."""
    return "" if len(values) == len(trials) else f" (n = {len(values)})"


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
