"""Expected results: the bands in which the figures of the paper's experiments must lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from refreshing.run import Run, mean_of
from refreshing.simulation import MULTIPLE, SINGLE, allocate, freshness

Runs = Mapping[str, Sequence[Run]]


@dataclass(frozen=True)
class Band:
    """A figure and the range it must lie in."""

    what: str
    value: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the figure lies in the range."""
        return self.low <= self.value <= self.high


BANDS = (
    ("single/uniform", "mean", 1.03, 1.07),
    ("single/ts", "mean", 1.85, 1.94),
    ("single/so", "mean", 2.18, 2.24),
    ("single/fgdqn", "mean", 2.00, np.inf),
    ("single/fgdqn", "last", 2.13, np.inf),
    ("single/fgdqn", "greedy", 2.15, np.inf),
    ("multiple/uniform", "mean", 1.15, 1.20),
    ("multiple/ts", "mean", 1.62, 1.74),
    ("multiple/so-group", "mean", 1.87, 1.94),
    ("multiple/so", "mean", 1.64, 1.71),
    ("multiple/fgdqn", "last", 1.80, np.inf),
    ("multiple/so", "fresh", 37.4, np.inf),
    ("multiple/static", "fresh", 37.0, np.inf),
    ("multiple/ts", "fresh", 0.0, 35.5),
)
FIGURES = {
    "mean": "mean reward",
    "last": "reward of the last 2,000 slots",
    "greedy": "reward when greedy",
    "fresh": "importance of the fresh pages, last 2,000 slots",
    "at_3000": "mean reward at slot 3,000",
}


def bands(runs: Runs) -> Iterator[Band]:
    """Yield every band whose figures have been measured."""
    shares = allocate(SINGLE.chances, np.array(SINGLE.weights))
    wanted = np.array([0.9418, 0.0033, 0.0549, 0.0])
    yield Band("p*: largest distance from (0.9418, 0.0033, 0.0549, 0)",
               float(np.abs(shares - wanted).max()), 0.0, 5e-4)  # fmt: skip
    for case, figure, low, high in BANDS:
        if runs.get(case):
            name = f"{case}: {FIGURES[figure]}"
            yield Band(name, mean_of(runs[case], figure)[0], low, high)
    for experiment in ("single", "multiple"):
        dqn, ts, so = (runs.get(f"{experiment}/{name}", []) for name in ("fgdqn", "ts", "so"))
        if dqn and ts and so:
            gain = mean_of(dqn, "last")[0] - mean_of(ts, "last")[0]
            yield Band(f"{experiment}: FG-DQN above TS, last 2,000 slots", gain, 0.0, np.inf)
    dqn, ts, so = (runs.get(f"single/{name}", []) for name in ("fgdqn", "ts", "so"))
    if dqn and ts and so:
        gain = mean_of(dqn, "at_3000")[0] - mean_of(ts, "at_3000")[0]
        yield Band("single: FG-DQN above TS, mean reward at slot 3,000", gain, 0.0, np.inf)
        share = mean_of(dqn, "last")[0] / mean_of(so, "last")[0]
        yield Band("single: FG-DQN to SO, last 2,000 slots", share, 0.95, np.inf)


def optima() -> Iterator[tuple[str, str, float]]:
    """Yield p* for each interpretation of the paper: name, shares, sum of weighted freshness."""
    weights, counts = np.array(SINGLE.weights), np.array(MULTIPLE.counts, float)
    bernoulli = np.array(SINGLE.rates)
    for name, chances, shares in (
        ("rates are Poisson rates", SINGLE.chances, allocate(SINGLE.chances, weights)),
        ("rates are probabilities", bernoulli, allocate(bernoulli, weights)),
        ("as printed", SINGLE.chances, np.array([0.942, 0.055, 0.003, 0])),
        ("as printed, pages 2 and 3 exchanged", SINGLE.chances, np.array([0.942, 0.003, 0.055, 0])),
    ):
        value = float((weights * freshness(shares, chances)).sum())
        yield name, _row(shares), value
    grouped = allocate(MULTIPLE.chances, weights, counts)
    value = float((counts * weights * freshness(grouped, MULTIPLE.chances)).sum())
    yield "second experiment, by page", _row(grouped * counts), value
    alone = allocate(MULTIPLE.chances, weights)
    value = float((counts * weights * freshness(alone / counts, MULTIPLE.chances)).sum())
    yield "second experiment, a group as one page", _row(alone), value


def seconds_of_a_million() -> float:
    """Return the CPU seconds of the exact allocation of a million pages on this machine."""
    random = np.random.default_rng(0)
    chances, weights = random.uniform(1e-7, 0.5, 10**6), random.random(10**6) + 0.01
    started = process_time()
    allocate(chances, weights)
    return process_time() - started


def _row(shares: np.ndarray[tuple[int], np.dtype[np.float64]]) -> str:
    return ", ".join(f"{share:.4f}" for share in shares)
