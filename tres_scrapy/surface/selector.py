"""The selector of the next keyword, and Tr, the executed actions that it learns from (B.2)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from tres_scrapy.surface.acquired import Acquired, Floats, Ints, Sightings
from tres_scrapy.surface.keyword_feature import Describe, Features, features, kernel


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


class Selector(Protocol):
    """Values candidates; the candidate with the highest value is asked next."""

    @property
    def describe(self) -> Describe:
        """The function that returns features of keywords; trials keep those at issue."""

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return a value for each candidate, [n]; `trials` may be empty."""


class Recapture:
    """Applies Eq. 5 to the new records per expected new record, estimated from recaptures.

    E is the expected number of unknown records of a keyword (see recapture.py), and
    r = E * sum_j kappa * new_j / sum_j kappa * E_j, the most likely ratio for Poisson yields. It
    assumes neither full-text search nor complete answers and does not need |D|.
    """

    describe = staticmethod(features)

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return the expected new records of each candidate."""
        if not len(trials):
            return acquired.df[candidates].astype(np.float64)
        kappa = kernel(self.describe(acquired, candidates), trials.features)
        rates = acquired.recaptures.rates
        promised = kappa @ trials.sightings.expected(rates)
        expected = acquired.recaptures.sightings(candidates).expected(rates)
        return expected * (kappa @ trials.new) / promised
