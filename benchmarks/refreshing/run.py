"""The runs of the cases, kept in a JSON lines file so that a benchmark can be continued."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tqdm import tqdm

from refreshing.case import cases
from refreshing.simulation import Trace, simulate

POINTS = 100  # of a curve
WINDOW = 200  # slots of the paper's moving average


@dataclass(frozen=True)
class Run:
    """The figures of one run; curves are sampled at POINTS slots, the last at the end."""

    case: str
    seed: int
    slots: int
    at_500: float
    at_3000: float
    mean: float
    last: float
    fresh: float
    greedy: float | None
    greedy_fresh: float | None
    running: list[float]
    moving: list[float]


def run_all(path: Path, jobs: int, only: str = "") -> dict[str, list[Run]]:
    """Do the runs missing in the file, and return all runs by case."""
    done = read(path)
    have = {(run.case, run.seed) for runs in done.values() for run in runs}
    todo = [
        (case.key, seed)
        for case in cases()
        for seed in range(case.runs)
        if only in case.key and (case.key, seed) not in have
    ]
    with ProcessPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as file:
        for run in tqdm(pool.map(_run, todo), "runs", len(todo), disable=None):
            file.write(json.dumps(asdict(run)) + "\n")
            file.flush()
            done[run.case].append(run)
    return done


def read(path: Path) -> dict[str, list[Run]]:
    """Return the runs of a file by case."""
    runs: dict[str, list[Run]] = defaultdict(list)
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            run = Run(**json.loads(line))
            runs[run.case].append(run)
    return runs


def mean_of(runs: Iterable[Run], figure: str) -> tuple[float, float]:
    """Return the mean of a figure and half its 95 % confidence interval."""
    values = np.array([getattr(run, figure) for run in runs], float)
    half = 1.96 * values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return float(values.mean()), float(half)


def _run(what: tuple[str, int]) -> Run:
    torch.set_num_threads(1)
    key, seed = what
    case = next(case for case in cases() if case.key == key)
    trace = simulate(case.experiment, case.make, case.slots + case.greedy, seed)
    main = Trace(trace.rewards[: case.slots], trace.fresh[: case.slots])
    running = np.cumsum(main.rewards) / np.arange(1, case.slots + 1)
    window = np.convolve(main.rewards, np.ones(WINDOW) / WINDOW, mode="full")[: case.slots]
    places = np.linspace(0, case.slots - 1, POINTS + 1).astype(int)[1:]
    rounded = partial(round, ndigits=5)
    return Run(
        key,
        seed,
        case.slots,
        rounded(main.running(500)),
        rounded(main.running(3000)),
        rounded(main.running(case.slots)),
        rounded(main.last(2000)),
        rounded(float(main.fresh[-2000:].mean())),
        rounded(float(trace.rewards[case.slots :].mean())) if case.greedy else None,
        rounded(float(trace.fresh[case.slots :].mean())) if case.greedy else None,
        [rounded(value) for value in running[places].tolist()],
        [rounded(value) for value in window[places].tolist()],
    )
