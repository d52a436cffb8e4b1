"""Shares with the interval in which they lie."""

from __future__ import annotations

from math import sqrt
from typing import Final

Z: Final = 1.96  # 95 %
PERCENT: Final = "\N{NO-BREAK SPACE}%"


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson (1927) of a share, (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    share, square = hits / trials, Z * Z / trials
    middle = (share + square / 2) / (1 + square)
    reach = Z * sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def percent_with_interval(hits: int, trials: int) -> str:
    """Return a share as `41.0 % (36.2 to 45.9 %)`."""
    low, high = wilson(hits, trials)
    share = hits / max(1, trials)
    return f"{100 * share:.1f}{PERCENT} ({100 * low:.1f} to {100 * high:.1f}{PERCENT})"
