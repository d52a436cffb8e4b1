"""How the plots of the benchmarks look."""

from __future__ import annotations

from typing import Any, Final

INK: Final = "#333333"
# Okabe and Ito's colours, distinct for colour-blind readers. The lists of dashes and markers have
# other lengths, so no two policies look the same.
COLOURS: Final = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#8c8c8c")
DASHES: Final = ("-", "--", "-.", ":")
MARKERS: Final = "osD^vPX*"
STYLE: Final[Any] = {
    "svg.hashsalt": "tres",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": "medium",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 5,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}
NO_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
