"""Lines that say how far a training is, and how long it still takes."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Protocol

from tqdm import tqdm

if TYPE_CHECKING:
    from collections.abc import Callable


class Ended(Protocol):
    """Receives the number of a fold that has ended, from 1, and its PR-AUC if that is known."""

    def __call__(self, fold: int, pr_auc: float | None = None) -> None:
        """Report the fold."""


def reporter(kind: str, say: Callable[[str], None], folds: int, *, more: bool) -> Ended:
    """Return a function that reports a fold and the time left for a kind of classifier.

    `more` says whether a fit to all documents follows the folds.
    """
    began = monotonic()

    def ended(fold: int, pr_auc: float | None = None) -> None:
        found = "" if pr_auc is None else f", PR-AUC {pr_auc:.3f}"
        left = (monotonic() - began) / fold * (folds + more - fold)
        until = f", about {tqdm.format_interval(left)} left for {kind}" if left >= 1 else ""
        say(f"{kind}: fold {fold} of {folds}{found}{until}")

    return ended
