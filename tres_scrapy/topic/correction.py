"""What a few answers change in the log odds of a model that was fitted without them.

The model before is the mean of a Gaussian prior over the log odds (Rasmussen, Williams, 2006,
section 3.4: Laplace's approximation). So few answers, or answers that agree with it, change little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tres_scrapy.topic.calibration import sigmoid

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

ROUNDS: Final = 50
CLOSE: Final = 1e-6  # change of the answers' weights at which the fit ends


def fit_correction(before: Numbers, cover: Numbers, said: Numbers) -> tuple[Numbers, float]:
    """Return the weight of each answer [n], and the log-likelihood of each by the others, summed.

    `before` [n] are log odds of the answered texts, `cover` [n, n] the prior covariance of their
    changes, `said` [n] is 0 or 1. The log odds of a text rise by its covariances times the weights.
    """
    sign, unit = 2 * said - 1, np.eye(len(said))

    def worth(weights: Numbers) -> float:
        change = cover @ weights
        return float(-np.logaddexp(0, -sign * (before + change)).sum() - weights @ change / 2)

    weights = np.zeros(len(said))
    for _ in range(ROUNDS):
        p = sigmoid(before + cover @ weights)
        curve = p * (1 - p)
        aim = curve * (cover @ weights) + said - p
        step = np.linalg.solve(unit + curve[:, None] * cover, aim) - weights
        size, least = 1.0, worth(weights)
        while worth(weights + size * step) < least and size > CLOSE:
            size /= 2
        weights = weights + size * step
        if float(np.abs(step).max(initial=0.0)) < CLOSE:
            break
    after = before + cover @ weights
    p = sigmoid(after)
    curve = p * (1 - p)
    # Variance and mean of the log odds without the answer itself (Vehtari et al., 2016).
    variance = np.diag(np.linalg.solve(unit + cover * curve, cover))
    without = after - variance / (1 - curve * variance) * (said - p)
    return weights, float(-np.logaddexp(0, -sign * without).sum())
