"""AUER, awake upper estimated reward: a bandit whose arms sleep at times (Kleinberg et al., 2010).

The score of an arm is the mean of its rewards plus alpha sqrt(ln t / n), where n of t choices were
of this arm. Kleinberg et al. take alpha = sqrt(8) for rewards from 0 to 1.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Table

ALPHA: Final = 2 * 2**0.5


class SleepingBandit:
    """Chooses the arm of highest score among those that are awake; new arms have the highest.

    Arms are numbered from 0. An arm can be chosen again before its reward is known: the choice
    counts at once, the reward when it comes.
    """

    def __init__(self, alpha: float = ALPHA) -> None:
        self.choices = 0
        self._alpha = alpha
        self._arms = Table(np.dtype([("chosen", "i8"), ("rewarded", "i8"), ("reward", "f8")]))

    def scores(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores [n] of arms, infinite for arms that were never chosen."""
        self._arms.extend(max(0, int(arms.max(initial=-1)) + 1 - len(self._arms)))
        chosen, rewarded = self._arms["chosen"].take(arms), self._arms["rewarded"].take(arms)
        width = np.sqrt(np.log(max(1, self.choices)) / np.maximum(chosen, 1))
        means = self._arms["reward"].take(arms) / np.maximum(rewarded, 1)
        return np.where(chosen > 0, means + self._alpha * width, np.inf)

    def choose(self, awake: NDArray[np.int64]) -> int:
        """Return the position in `awake` of the arm to take; among equal arms, the oldest."""
        position = int(np.lexsort((awake, -self.scores(awake)))[0])
        self._arms["chosen"][awake[position]] += 1
        self.choices += 1
        return position

    def learn(self, arm: int, reward: float) -> None:
        """Add the reward of a choice to its arm."""
        self._arms["rewarded"][arm] += 1
        self._arms["reward"][arm] += reward
