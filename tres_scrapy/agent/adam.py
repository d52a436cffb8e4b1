"""Adam, the optimizer of the Q-network (Kingma and Ba, 2015, Algorithm 1)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

BETA: Final = 0.9, 0.999  # of the mean, of the mean square
EPSILON: Final = 1e-8

Values = NDArray[np.float32]


class Adam:
    """Fading means of the gradient (`mean`) and of its square (`square`) by parameter, [P].

    After t steps a parameter moves by -rate m' / (sqrt(s') + EPSILON), where m' = m / (1 - BETA1^t)
    and s' = s / (1 - BETA2^t) correct for means that began at 0.
    """

    def __init__(self, parameters: Values) -> None:
        self.steps = 0
        self.mean = np.zeros_like(parameters)
        self.square = np.zeros_like(parameters)
        self._parameters = parameters

    def step(self, gradient: Values, rate: float) -> None:
        """Move the parameters [P] in place."""
        self.steps += 1
        first, second = BETA
        self.mean += (1 - first) * (gradient - self.mean)
        self.square += (1 - second) * (gradient**2 - self.square)
        deviation = np.sqrt(self.square) / math.sqrt(1 - second**self.steps)
        self._parameters -= rate / (1 - first**self.steps) * self.mean / (deviation + EPSILON)
