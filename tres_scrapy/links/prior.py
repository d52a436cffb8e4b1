"""What is known of a link before anything is learned: x(s, a), and weights that hold anywhere."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.links.code import Codes

# The columns of what is known; the features of x(s, a) bear their numbers.
KNOWN: Final = ("one", "anchor_logit", 4, 5, 1, 2, 3, 7, 8, "siblings", "host_logit")
_MEANS: Final = {"anchor_logit": 2.0, "host_logit": 0.7}  # of the weights; others 0
# P(relevant) of an anchor text counts as at least LEAST and at most MOST: "more" or a number names
# nothing of the topic, and leads to relevant pages all the same where a site has many of them.
LEAST: Final = 0.1
MOST: Final = 0.98


class LinkPrior(NamedTuple):
    """Codes [m] and their weights [m] before anything is learned; other codes have 0."""

    codes: Codes
    weights: NDArray[np.float32]


NO_PRIOR: Final = LinkPrior(np.zeros(0, dtype=np.uint32), np.zeros(0, dtype=np.float32))


def known_of(
    x: NDArray[np.float32], siblings: NDArray[np.float32], hosts: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the known facts [n, K] of links from x(s, a) [n, 9], their siblings and hosts [n]."""
    known = np.empty((len(x), len(KNOWN)), dtype=np.float32)
    anchor = np.clip(x[:, 5], LEAST, MOST)
    known[:, 0] = 1
    known[:, 1] = np.log(anchor / (1 - anchor)) / 2
    known[:, 2:4] = x[:, 3:5]
    known[:, 4:7] = x[:, 0:3]
    known[:, 7] = x[:, 6] - 0.5
    known[:, 8] = x[:, 7] - 0.5
    known[:, 9] = siblings
    known[:, 10] = hosts
    return known


def prior_of() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return means [K] and precisions [K] of the weights of known facts."""
    means = np.array([_MEANS.get(str(name), 0.0) for name in KNOWN], dtype=np.float32)
    return means, np.ones(len(KNOWN), dtype=np.float32)
