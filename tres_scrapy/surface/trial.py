"""Tr, the executed actions: what each keyword promised when it was issued, and what it brought."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.surface.acquired import Ints
from tres_scrapy.surface.keyword_feature import Features, Floats
from tres_scrapy.surface.recapture import Sightings

LEAST_TOTAL: Final = 1.2  # times |S_t|: no estimate of |D| says that nearly all is acquired


class Trial(NamedTuple):
    """An executed action.

    `features` [1], `share`, DF/|S|, and `sightings` [1] are those of the moment of issue, and so is
    `known`, |S|; `found` is |R(s, a)|, the records returned, and `new` |R_new(s, a)|.
    """

    number: int
    features: Features
    share: float
    known: int
    found: int
    new: int
    sightings: Sightings


class Trials:
    """The executed actions in their order, as columns."""

    def __init__(self) -> None:
        self.rows: list[Trial] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, trial: Trial) -> None:
        """Append an executed action."""
        self.rows.append(trial)

    @property
    def numbers(self) -> Ints:
        """The keywords, [t]."""
        return np.array([trial.number for trial in self.rows], np.int64)

    @property
    def found(self) -> Floats:
        """|R(s, a_j)|, [t]."""
        return np.array([trial.found for trial in self.rows], np.float64)

    @property
    def new(self) -> Floats:
        """|R_new(s_j, a_j)|, [t]."""
        return np.array([trial.new for trial in self.rows], np.float64)

    @property
    def known(self) -> Floats:
        """|S_j| at the moment of issue, [t]."""
        return np.array([trial.known for trial in self.rows], np.float64)

    @property
    def shares(self) -> Floats:
        """DF/|S_j| at the moment of issue, [t], at least half a record."""
        shares = np.array([trial.share for trial in self.rows], np.float64)
        return np.maximum(shares, 0.5 / np.maximum(self.known, 1))

    @property
    def features(self) -> Features:
        """The features at the moment of issue, [t]."""
        parts = [trial.features for trial in self.rows]
        return Features(
            np.concatenate([part.numeric for part in parts]),
            np.concatenate([part.discrete for part in parts]),
        )

    @property
    def sightings(self) -> Sightings:
        """What was known of the keywords at the moment of issue, [t]."""
        return Sightings.join([trial.sightings for trial in self.rows])


def recaptured_total(trials: Trials, acquired: int) -> float:
    """Estimate |D| by capture and recapture (Schnabel): what queries return that was known."""
    found, known = trials.found, trials.known
    again = float((found - trials.new).sum())
    estimate = float((found * known).sum()) / again if again else np.inf
    return max(estimate, LEAST_TOTAL * acquired)
