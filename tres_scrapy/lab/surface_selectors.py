"""Selectors that `scrapy crawl surface` is compared with: the paper's Q and its rivals (B.2, B.3).

Eq. 5, 6 and 7 are interpreted as docs/surface.md says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.extra import require
from tres_scrapy.surface.acquired import Acquired, Floats, Ints
from tres_scrapy.surface.keyword_feature import Describe, Features, features, kernel
from tres_scrapy.surface.selector import Selector, Trials

LEAST_LEFT: Final = 0.02  # least share of the database that is assumed unknown
LEAST_TOTAL: Final = 1.2  # times |S_t|: the least estimate of |D|
Total = Callable[[Trials, int], float]  # estimates |D| from the trials and |S_t|


def response_sizes(kappa: NDArray[np.floating], found: Floats) -> Floats:
    """Return |R(s_t, a_i)|, [n], by Eq. 5 from kappa [n, t] with row sums of one and |R_j| [t]."""
    sizes: Floats = kappa @ found
    return sizes


def rewards(sizes: Floats, df: Ints, total: float) -> Floats:
    """Return r(s_t, a) = (|R(s_t, a)| - DF(s_t, a)) / |D|, [n] (Eq. 6).

    It is exact only if a query returns every record that holds its keyword.
    """
    rewards: Floats = (sizes - df) / total
    return rewards


def q_values(rewards: Floats, df: Ints, acquired: int, total: float, gamma: float = 1.0) -> Floats:
    """Return Q(s_t, a_i), [n], one step ahead (Eq. 7, h = 1); |S_t| is `acquired`, |D| is `total`.

    With |R_j|/|D| = DF_j/|D| + r_j the bracket is |R_j|/|D| * (1 - |S_{t+1}|/|D|). Its maximum is
    at the largest response of another keyword for every a_i, so no pairs are compared.
    """
    if len(rewards) < 2:
        return rewards.copy()
    shares = df / total + rewards  # |R_j| / |D|
    left = 1 - acquired / total - rewards  # the share of the database that remains after a_i
    best = np.where(left >= 0, _best_other(shares), -_best_other(-shares))
    q: Floats = rewards + gamma * best * left
    return q


def _best_other(values: Floats) -> Floats:
    """Return the largest of the other values for each position, [n]."""
    first = int(values.argmax())
    best = np.full(len(values), values[first])
    best[first] = np.delete(values, first).max()
    return best


def recaptured_total(trials: Trials, acquired: int) -> float:
    """Estimate |D| by capture and recapture (Schnabel) from the known records in answers."""
    found, known = trials.found, trials.known
    again = float((found - trials.new).sum())
    estimate = float((found * known).sum()) / again if again else np.inf
    return max(estimate, LEAST_TOTAL * acquired)


def spelling_features(acquired: Acquired, numbers: Ints) -> Features:
    """Return the features without the kind, for a comparison without parts of speech."""
    every = features(acquired, numbers)
    return Features(every.numeric, every.discrete[:, :1])


class YieldRatio:
    """Applies Eq. 5 to the new records per expected hit, which works for any kind of search.

    r = p * sum_j kappa * new_j / p_j, with p the share of acquired records that hold a keyword.
    Unlike Theorem 1, it assumes neither full-text search nor complete answers. With `total`, yields
    are corrected for known records, a keyword hits at most `cap` records, and Q looks one step
    ahead (h = 1) unless `ahead` is False. Without `total`, |D| is not needed.
    """

    def __init__(
        self,
        total: Total | None = None,
        *,
        cap: int | None = None,
        ahead: bool = True,
        describe: Describe = features,
    ) -> None:
        self.describe = describe
        self._total = total
        self._cap = cap
        self._ahead = ahead

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return the expected new records of each candidate, or its Q if |D| is known."""
        df, n = acquired.df[candidates], max(acquired.records, 1)
        if not len(trials):
            return df.astype(np.float64)
        kappa = kernel(self.describe(acquired, candidates), trials.features)
        shares = np.maximum(df / n, 0.5 / n)
        if self._total is None:
            return shares * response_sizes(kappa, trials.new / trials.shares)
        total = self._total(trials, n)
        most = np.inf if self._cap is None else self._cap / total
        left = np.maximum(1 - np.append(trials.known, n) / total, LEAST_LEFT)
        hits = np.minimum(trials.shares, most) * left[:-1]
        r = np.minimum(shares, most) * left[-1] * response_sizes(kappa, trials.new / hits) / total
        return q_values(r, df, n, total) if self._ahead else r


class Paper:
    """Applies Eq. 5 to 7 literally: executed actions too have their features at s_t.

    After a full-text query DF = |R|, so every executed action predicts no new records (see docs).
    """

    def __init__(self, total: Total, *, ahead: bool = True, describe: Describe = features) -> None:
        self.describe = describe
        self._total = total
        self._ahead = ahead

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return Q(s_t, a) of each candidate."""
        df = acquired.df[candidates]
        if not len(trials):
            return df.astype(np.float64)
        executed = self.describe(acquired, trials.numbers)
        sizes = response_sizes(kernel(self.describe(acquired, candidates), executed), trials.found)
        total = self._total(trials, acquired.records)
        r = rewards(sizes, df, total)
        return q_values(r, df, acquired.records, total) if self._ahead else r


class GenericFrequency:
    """Q(s_t, a) = DF(s_t, a)."""

    describe = staticmethod(features)

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return the DF of each candidate."""
        return acquired.df[candidates].astype(np.float64)


class Zipf:
    """|R(s_t, a)| by the Zipf-Mandelbrot law of the DF rank, fitted to the executed actions."""

    describe = staticmethod(features)

    def __init__(self) -> None:
        require("train", "selector 'zipf'")
        self.law = np.array([1.0, 1.0, 1.0])  # log alpha, beta, gamma

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return |R| - DF of each candidate; without a new fit the previous one is used."""
        ranks = df_ranks(acquired.df)
        self._fit(ranks[trials.numbers], trials.found)
        sizes = np.exp(zipf_mandelbrot(ranks[candidates], *self.law))
        return rewards(sizes, acquired.df[candidates], 1.0)

    def _fit(self, ranks: Floats, found: Floats) -> None:
        kept = found > 0
        if kept.sum() < len(self.law):
            return
        from scipy.optimize import OptimizeWarning, curve_fit  # noqa: PLC0415 - slow to import

        try:
            self.law, _ = curve_fit(
                zipf_mandelbrot, ranks[kept], np.log(found[kept]),
                p0=np.clip(self.law, [-20, 0, 0.01], [20, 1000, 4]),
                bounds=([-20, 0, 0.01], [20, 1000, 4]),
            )  # fmt: skip
        except (RuntimeError, OptimizeWarning):  # it did not converge
            return


class Random:
    """Q = U(0, 1)."""

    describe = staticmethod(features)

    def __init__(self, seed: int = 0) -> None:
        self._random = np.random.default_rng(seed)

    def values(self, acquired: Acquired, trials: Trials, candidates: Ints) -> Floats:
        """Return a random number for each candidate."""
        return self._random.random(len(candidates))


def df_ranks(df: Ints) -> Floats:
    """Return the rank of each keyword by DF, from 1 for the most frequent, [n]."""
    ranks = np.empty(len(df), np.float64)
    ranks[np.argsort(-df, kind="stable")] = np.arange(1, len(df) + 1)
    return ranks


def zipf_mandelbrot(ranks: Floats, log_alpha: float, beta: float, gamma: float) -> Floats:
    """Return log(alpha * (rank + beta)^-gamma), [n]."""
    logs: Floats = log_alpha - gamma * np.log(ranks + beta)
    return logs


SELECTORS: Final[dict[str, Callable[[int], Selector]]] = {
    "yield-ratio": lambda seed: YieldRatio(),
    "paper": lambda seed: Paper(recaptured_total),
    "gf": lambda seed: GenericFrequency(),
    "zipf": lambda seed: Zipf(),
    "random": Random,
}
