"""Static optimisation (Eq. 8): how often to fetch each page when its change rate is known.

A page that changes with chance d and is fetched with probability p in each slot is fresh for the
share F = p / (p + d - d p) of the time. The sum of w F over all pages is concave in p. At its
maximum, w d / (d + (1 - d) p)^2 is the same price for every page that is fetched at all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MIN_CHANCE: Final = 1e-12  # bounds for the chance of a change
MAX_CHANCE: Final = 1 - 1e-9
STEPS: Final = 100  # of the bisection


def chance(rates: Floats) -> Floats:
    """Return the chance of a change in one slot, from Poisson rates in changes a slot."""
    return np.clip(-np.expm1(-rates), MIN_CHANCE, MAX_CHANCE)


def freshness(shares: Floats, chances: Floats) -> Floats:
    """Return the share of time that each page is fresh: F of Eq. 8 without the weight."""
    return np.where(shares > 0, shares / (shares + chances - chances * shares), 0.0)


def allocate(
    chances: Floats, weights: Floats, budget: float = 1.0, counts: Floats | None = None
) -> Floats:
    """Return the exact optimal probability of a fetch in a slot for each page, [n].

    `budget` is the number of fetches in a slot, at most one. An entry stands for `counts` similar
    pages (default: one). Chances and weights are above 0. Takes n log n time.
    """
    chances = np.clip(chances, MIN_CHANCE, MAX_CHANCE)
    each = np.ones_like(chances) if counts is None else counts
    worth = weights / chances  # the price at which a page is first fetched
    order = np.argsort(-worth, kind="stable")
    odds = chances / (1 - chances)
    lift = np.sqrt(weights * chances) / (1 - chances)
    level = (budget + np.cumsum((each * odds)[order])) / np.cumsum((each * lift)[order])
    # The first m pages are fetched: page m is the last with a worth above the resulting price.
    last = int(np.flatnonzero(worth[order] * level**2 > 1)[-1])
    shares: Floats = np.maximum(level[last] * lift - odds, 0.0)
    return shares


def allocate_within(
    chances: Floats, weights: Floats, least: Floats, most: Floats, budget: float = 1.0
) -> Floats:
    """Return the optimal probabilities between `least` and `most`, [n] each, by bisection.

    If `least` alone exceeds the budget, it is scaled down; if `most` fits in it, it is returned.
    """
    chances = np.clip(chances, MIN_CHANCE, MAX_CHANCE)
    most = np.minimum(most, budget)
    if least.sum() >= budget:
        scaled: Floats = least * (budget / least.sum())
        return scaled
    if most.sum() <= budget:
        return most
    odds, lift = chances / (1 - chances), np.sqrt(weights * chances) / (1 - chances)
    # The level is the price to the power of -1/2.
    low, high = 0.0, float(((most + odds) / lift).max())
    for _ in range(STEPS):
        level = (low + high) / 2
        if np.clip(level * lift - odds, least, most).sum() > budget:
            high = level
        else:
            low = level
    return np.clip(low * lift - odds, least, most)
