"""The tables and plots of the runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from plot_style import COLOURS, DASHES, NO_METADATA, STYLE

from refreshing.band import Runs, bands, optima, seconds_of_a_million
from refreshing.run import POINTS, WINDOW, mean_of

TITLES = {
    "single": "One page in each arm (the paper's Figures 1 and 3)",
    "multiple": "5, 80, 10 and 5 pages (Figures 2 and 4)",
    "bernoulli": "One page in each arm, rates read as probabilities",
    "early": "The first 3,000 slots, on more seeds",
    "probe": "What FG-DQN depends on (one page in each arm)",
}
NAMES = {
    "uniform": "uniform over arms",
    "round-robin": "round robin over pages",
    "ts": "Thompson sampling, as printed",
    "ts-importance": "Thompson sampling, scaled by importance",
    "so": "static optimisation, rates known, drawn",
    "so-group": "the same, a group as one page",
    "static": "static optimisation, rates estimated, spaced (our default)",
    "adaptive-storm": "adaptive intervals, StormCrawler's rule",
    "adaptive-nutch": "adaptive intervals, Nutch's rule",
    "fgdqn": "FG-DQN",
    "ts-then-dqn": "Thompson sampling for 1,000 slots, then FG-DQN",
    "oracle-reward": "oracle: Whittle index of the reward",
    "oracle-freshness": "oracle: Whittle index of freshness",
}
DRAWN = {
    "so": "static optimisation",
    "fgdqn": "FG-DQN",
    "ts-then-dqn": "Thompson sampling, then FG-DQN",
    "ts": "Thompson sampling",
    "static": "our default",
    "uniform": "uniform over arms",
}
COLUMNS = ("at_500", "at_3000", "mean", "last", "fresh")


def write(directory: Path, runs: Runs) -> bool:
    """Write simulation.md and the plots; return whether every band holds."""
    found = list(bands(runs))
    lines = [
        "# The refresh paper's experiments",
        "",
        "`python benchmarks/refresh.py` makes this page from runs.jsonl, which keeps the runs of "
        "policies that have been removed. Mean of the runs, behind ± half the 95 % confidence "
        "interval. [What does not hold of the paper](claims.md).",
        "",
        "## The optimum p*",
        "",
        "| reading | shares of the arms | sum of importance x freshness |",
        "|---|---|---|",
        *(f"| {name} | {shares} | {value:.4f} |" for name, shares, value in optima()),
        "",
        f"The exact allocation of 1,000,000 pages took {seconds_of_a_million():.2f} s of CPU here.",
        "",
    ]
    for experiment, title in TITLES.items():
        lines += _table(experiment, title, runs)
    lines += ["## Bands", "", "| figure | value | from | to | |", "|---|---|---|---|---|"]
    lines += [
        f"| {band.what} | {band.value:.4g} | {band.low:g} | {band.high:g} "
        f"| {'holds' if band.holds else '**does not hold**'} |"
        for band in found
    ]
    (directory / "simulation.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    _draw(directory, runs)
    return all(band.holds for band in found)


def _table(experiment: str, title: str, runs: Runs) -> Iterator[str]:
    cases = {key.partition("/")[2]: own for key, own in runs.items()
             if key.startswith(f"{experiment}/")}  # fmt: skip
    if not cases:
        return
    slots = max(own[0].slots for own in cases.values())
    yield f"## {title}"
    yield ""
    yield (
        "| policy | runs x slots | mean reward, 500 slots | 3,000 | all | last 2,000 "
        "| fresh importance | greedy |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, own in cases.items():
        cells = [f"{mean_of(own, column)[0]:.3f}" for column in COLUMNS]
        cells[2] += f" ± {mean_of(own, 'mean')[1]:.3f}"
        greedy = f"{mean_of(own, 'greedy')[0]:.3f}" if own[0].greedy is not None else ""
        count = f"{len(own)} x {own[0].slots:,}"
        yield f"| {NAMES.get(name, name)} | {count} | {' | '.join(cells)} | {greedy} |"
    yield ""
    if experiment in {"single", "multiple"}:
        yield f"![running and moving average]({experiment}.svg)"
        yield ""
        yield (
            f"Left: mean reward up to a slot of {slots:,}; right: mean of {WINDOW} slots. Bands "
            "are 95 % confidence intervals of the mean of the runs."
        )
        yield ""


def _draw(directory: Path, runs: Runs) -> None:
    with mpl.rc_context(STYLE):
        for experiment in ("single", "multiple"):
            figure = Figure(figsize=(9, 3.6), layout="constrained")
            left, right = figure.subplots(1, 2, sharey=True)
            for number, policy in enumerate(DRAWN):
                _line(left, runs, f"{experiment}/{policy}", "running", number)
                _line(right, runs, f"{experiment}/{policy}", "moving", number)
            left.set(xlabel="slot", ylabel="reward", title="running average")
            right.set(xlabel="slot", title=f"moving average of {WINDOW} slots")
            handles, labels = left.get_legend_handles_labels()
            figure.legend(handles, labels, loc="outside lower center", ncols=3)
            buffer = StringIO()
            figure.savefig(buffer, format="svg", metadata=NO_METADATA)
            text = re.sub(r"(\d\.\d\d)\d+", r"\1", buffer.getvalue())
            (directory / f"{experiment}.svg").write_text(text, encoding="utf-8")


def _line(axes: Axes, runs: Runs, case: str, curve: str, number: int) -> None:
    own = runs.get(case)
    if not own:
        return
    values = np.array([getattr(run, curve) for run in own])
    slots = np.linspace(0, own[0].slots, POINTS + 1)[1:]
    mean = values.mean(axis=0)
    if curve == "moving":  # the first windows are not full
        slots, mean, values = (each[..., slots >= WINDOW] for each in (slots, mean, values))
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(
        slots,
        mean,
        label=DRAWN[case.partition("/")[2]],
        color=colour,
        linestyle=DASHES[number % len(DASHES)],
    )
    if len(own) > 1:
        half = 1.96 * values.std(axis=0, ddof=1) / len(own) ** 0.5
        axes.fill_between(slots, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
