"""Tr, the executed actions: the features of each keyword at issue, and its answer."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.surface.acquired import Ints
from tres_scrapy.surface.keyword_feature import Features, Floats
from tres_scrapy.surface.recapture import Sightings

LEAST_TOTAL: Final = 1.2  # times |S_t|: the least estimate of |D|


class Trial(NamedTuple):
    """An executed action: a query for the keyword `number`.

    At the moment of issue: `features` [1], `share` (DF/|S|), `known` (|S|) and `sightings` [1]. Of
    the answer: `found` (|R(s, a)|) and `new` (|R_new(s, a)|) records.
    """

    number: int
    features: Features
    share: float
    known: int
    found: int
    new: int
    sightings: Sightings


class Trials:
    """The executed actions in order, as columns."""

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
        """The sightings at the moment of issue, [t]."""
        return Sightings.join([trial.sightings for trial in self.rows])


def recaptured_total(trials: Trials, acquired: int) -> float:
    """Estimate |D| by capture and recapture (Schnabel) from the known records in answers."""
    found, known = trials.found, trials.known
    again = float((found - trials.new).sum())
    estimate = float((found * known).sum()) / again if again else np.inf
    return max(estimate, LEAST_TOTAL * acquired)
