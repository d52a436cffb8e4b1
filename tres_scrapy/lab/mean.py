"""Means over the starts and seeds of one policy, topic and MAX (Tables 3 and 4)."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.result import Result

TRES: Final = "tres"
ORACLE: Final = "oracle"
LOOKAHEAD: Final = "lookahead"
CEILINGS: Final = (ORACLE, LOOKAHEAD)  # they know the labels of the web
VARIANTS: Final = ("tres_svm", "tres_nh", "tres_async", "synchronous")  # Table 4


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

    def dominates(self, other: Cell) -> bool:
        """Return whether both means are at least the other's, and one is higher (Pareto).

        The means are over the starts and seeds that both have.
        """
        cell, other = self.beside(other), other.beside(self)
        mine, theirs = (cell.reach, cell.domains.mean), (other.reach, other.domains.mean)
        return mine != theirs and mine[0] >= theirs[0] and mine[1] >= theirs[1]

    def beside(self, other: Cell) -> Cell:
        """Return the results of the starts and seeds that both have, or all results."""
        trials = other.trials
        return Cell(
            tuple(each for each in self.results if each.run.trial in trials) or self.results
        )

    def shares(
        self, other: Cell, count: Callable[[Result], int] = lambda result: result.relevant
    ) -> list[float]:
        """Return a count (relevant pages) as a share of the other's, for each common trial."""
        others = {result.run.trial: count(result) for result in other.results}
        return [
            count(result) / others[result.run.trial]
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
