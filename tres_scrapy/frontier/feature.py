"""The state features of x(s, a): what the path to a page says of its outlinks (P 2.4.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FEATURES = (
    "parent_reward",
    "path_closeness",
    "path_relevance",
    "keyword_in_url",
    "keyword_in_anchor",
    "anchor_probability",
    "domain_relevance",
    "domain_known",
)
STATE = slice(0, 3)
ACTION = slice(3, 6)
STATIC = 6  # the first six features never change; the ledger gives the last two when they are read
NEIGHBOURHOOD = slice(6, 8)
BUCKETED = (1, 2, 6)  # features 2, 3 and 7 of the paper, counted from zero


class Path(NamedTuple):
    """The pages from the seed to page v: the part of state s that an outlink of v sees.

    `reward` is that of v; `distance` counts pages back to the closest relevant one, v itself
    being at distance 1.
    """

    reward: float
    length: int
    relevant: int
    distance: int

    def extended(self, reward: float) -> Path:
        """Return the path one page longer, its new last page having earned `reward`."""
        relevant = reward > 0
        distance = 1 if relevant else self.distance + 1
        return Path(reward, self.length + 1, self.relevant + relevant, distance)

    @property
    def features(self) -> tuple[float, float, float]:
        """Features 1 to 3: reward of v, closeness of relevance, share of relevant pages."""
        return self.reward, 1 / self.distance, self.relevant / self.length


SEED_PATH = Path(reward=1.0, length=1, relevant=1, distance=1)  # a seed counts as relevant
NO_PATH = (0.0, 0.0, 0.0)  # the state s_-1 in which a seed is chosen


def bucket(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return `x` [n, 8] with features 2, 3 and 7 cut to the lower edge of ten buckets (P1)."""
    x = x.copy()
    # The slack keeps a float32 0.3, just under three tenths, in the bucket it belongs to.
    x[:, BUCKETED] = np.minimum(np.floor(x[:, BUCKETED] * 10 + 1e-4), 9) / 10
    return x
