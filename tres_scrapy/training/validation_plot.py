"""Pictures of what classifiers answered for documents they had not seen (P 3.3), as inline SVG."""

from __future__ import annotations

import re
from io import StringIO
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure
from sklearn.metrics import precision_recall_curve

from tres_scrapy.training.score import interval, score
from tres_scrapy.training.validation import best_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from tres_scrapy.training.validation import Epoch, Validation

INK: Final = "#123456"  # stands for the colour of the page's text, light or dark
# apart for colour-blind readers and on both backgrounds; the line's style tells them apart too
COLOURS: Final = ("#1f7fd6", "#d9730d", "#2a9d6f", "#a763c0", "#8a8a8a")
DASHES: Final = ("-", "--", ":", "-.", (0, (1, 3)))
STYLE: Final[Any] = {
    "svg.hashsalt": "tres",
    "svg.fonttype": "none",
    "font.size": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.15,
    "legend.frameon": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "grid.color": INK,
}
BINS: Final = np.linspace(0, 1, 11)
_NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(validations: Sequence[Validation]) -> dict[str, Markup]:
    """Return the pictures by name; the first model is the chosen one, which most are about."""
    chosen = validations[0]
    painters: dict[str, Callable[[Figure], None]] = {
        "curves": lambda figure: _curves(figure.subplots(), validations),
        "thresholds": lambda figure: _thresholds(figure, chosen),
        "calibration": lambda figure: _calibration(figure, chosen),
        "distribution": lambda figure: _distribution(figure, chosen),
    }
    if any(chosen.histories):
        painters["learning"] = lambda figure: _learning(figure, chosen.histories)
    pictures = {}
    with mpl.rc_context(STYLE):
        for name, paint in painters.items():
            figure = Figure(figsize=(5.6, 4), layout="constrained")
            paint(figure)
            pictures[name] = svg_of(figure)
    return pictures


def svg_of(figure: Figure) -> Markup:
    """Return the figure as an element of a page: no header, no ids shared by two pictures."""
    buffer = StringIO()
    figure.savefig(buffer, format="svg", metadata=_NO_METADATA)
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    return Markup(re.sub(r' (?:xmlns(?::\w+)?="[^"]*"|id="[\w.]+_\d+")', "", text))  # noqa: S704 - matplotlib escapes


def _curves(axes: Axes, validations: Sequence[Validation]) -> None:
    lowest = 1.0
    styles = zip(validations, cycle(COLOURS), cycle(DASHES), strict=False)
    for validation, colour, dashes in styles:
        precision, recall, _ = precision_recall_curve(validation.true, validation.texts)
        figures = score(validation.true, validation.texts, validation.threshold)
        axes.plot(
            recall[:-1],  # the last point is scikit-learn's own: precision 1 at recall 0
            precision[:-1],
            color=colour,
            linestyle=dashes,
            label=f"{validation.kind} (area {figures.pr_auc:.3f})",
        )
        axes.plot(figures.recall, figures.precision, "o", color=colour)
        lowest = min(lowest, figures.precision, figures.recall)
    start = max(0, np.floor(lowest * 10 - 2) / 10)
    axes.set(xlim=(start, 1.01), ylim=(start, 1.01))
    axes.set_xlabel("recall: share of the relevant documents found")
    axes.set_ylabel("precision: share of those found that are relevant")
    axes.legend(loc="lower left")


def _thresholds(figure: Figure, chosen: Validation) -> None:
    axes = figure.subplots()
    steps = np.linspace(0, 1, 51)
    figures = np.array([score(chosen.true, chosen.texts, step)[:3] for step in steps.tolist()])
    names = ("precision", "recall", "F-macro")
    for name, values, colour, dashes in zip(names, figures.T, COLOURS, DASHES, strict=False):
        axes.plot(steps, values, color=colour, linestyle=dashes, label=name)
    _mark_threshold(axes, chosen.threshold)
    axes.set(xlim=(0, 1), ylim=(0, 1.02), xlabel="threshold", ylabel="figure at that threshold")
    figure.legend(loc="outside lower center", ncols=3)


def _calibration(figure: Figure, chosen: Validation) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    bins = np.clip(np.digitize(chosen.texts, BINS) - 1, 0, len(BINS) - 2)
    counts = np.bincount(bins, minlength=len(BINS) - 1)
    filled = np.flatnonzero(counts)
    said = np.array([chosen.texts[bins == number].mean() for number in filled])
    relevant = np.bincount(bins, chosen.true)
    shares = [interval(int(relevant[number]), int(counts[number])) for number in filled]
    low, share, high = np.array(shares).T
    upper.plot([0, 1], [0, 1], color=INK, linewidth=0.8, label="as it should be")
    upper.errorbar(
        said,
        share,
        yerr=(share - low, high - share),
        color=COLOURS[0],
        marker="o",
        label=f"{chosen.kind}, with the 95 % range of chance",
    )
    upper.set(xlim=(0, 1), ylim=(-0.02, 1.02), ylabel="share truly relevant")
    upper.legend(loc="upper left")
    lower.bar(BINS[:-1] + 0.05, counts, width=0.09, color=COLOURS[0])
    _count_documents(lower)
    lower.set_xlabel("probability the model gave")


def _distribution(figure: Figure, chosen: Validation) -> None:
    axes = figure.subplots()
    edges = np.linspace(0, 1, 26)
    for relevant, name in ((True, "relevant"), (False, "irrelevant")):
        values = chosen.texts[chosen.true == relevant]
        counts, _ = np.histogram(values, edges)
        axes.stairs(
            counts,
            edges,
            fill=relevant,
            alpha=0.55 if relevant else 1,
            color=COLOURS[0 if relevant else 1],
            linewidth=1.6,
            label=f"{name} ({len(values):,})",
        )
    _mark_threshold(axes, chosen.threshold)
    _count_documents(axes)
    axes.set(xlim=(0, 1), xlabel="probability the model gave")
    figure.legend(loc="outside lower center", ncols=2)


def _learning(figure: Figure, histories: Sequence[Sequence[Epoch]]) -> None:
    upper, lower = figure.subplots(2, 1, sharex=True)
    for history in filter(None, histories):
        loss, mcc = np.array(history).T
        epochs = np.arange(1, len(history) + 1)
        upper.plot(epochs, loss, marker=".", color=COLOURS[0], alpha=0.7, linewidth=1.2)
        lower.plot(epochs, mcc, color=COLOURS[0], alpha=0.7, linewidth=1.2)
        best = best_epoch(history)
        lower.plot(best + 1, mcc[best], "o", color=COLOURS[1])
    upper.set_ylabel("loss in training")
    lower.set(xlabel="epoch: passes over the training documents", ylabel="MCC on held-out ones")
    lower.xaxis.get_major_locator().set_params(integer=True)


def _count_documents(axes: Axes) -> None:
    """Make the upright axis one of counts, logarithmic from ten so that a few are still seen."""
    axes.set_yscale("symlog", linthresh=10)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.set_ylabel("documents")


def _mark_threshold(axes: Axes, threshold: float) -> None:
    axes.axvline(threshold, color=INK, linewidth=1, linestyle=":")
    axes.annotate(
        f"{threshold:.2f}",
        (threshold, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
    )
