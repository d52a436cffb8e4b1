"""The link model: P(relevant | what a link says), learned while the crawl runs.

Logistic regression over hashed codes and over x(s, a), online. The weights are fitted by AdaGrad
(Duchi et al., 2011) on each experience and some earlier ones; the fit is the maximum a posteriori
under a Gaussian prior. The variance of each weight is the diagonal of Laplace's approximation
(Chapelle and Li, 2011), in which an experience counts once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.learning import LinkOptions
from tres_scrapy.links.code import BITS, GROUP_SIZE, Codes, CueGroup

# The columns of what is known; the features of x(s, a) bear their numbers.
KNOWN: Final = ("one", "anchor_logit", 4, 5, 1, 2, 3, 7, 8, "siblings", "host_logit")
# Of the weights; others 0. Links of one page lead to pages like each other.
_MEANS: Final = {"anchor_logit": 2.0, "siblings": 1.0, "host_logit": 0.7}
# Bounds of P(relevant) of an anchor text: "more" or a number names nothing of the topic, and leads
# to relevant pages all the same where a site has many of them.
MIN_ANCHOR: Final = 0.1
MAX_ANCHOR: Final = 0.98


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
    anchor = np.clip(x[:, 5], MIN_ANCHOR, MAX_ANCHOR)
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


GROUPS: Final = len(CueGroup)
_START: Final = 1e-2  # of AdaGrad's sums of squares
_HIGHEST: Final = 1e9  # number allowed in a file: no sum overflows
_LARGEST: Final = 30.0  # logit: beyond it the exponential says nothing more


class Links(NamedTuple):
    """What the model reads of n links: the known facts [n, K], and codes with their values."""

    known: NDArray[np.float32]
    codes: NDArray[np.uint32]  # [m]
    values: NDArray[np.float32]  # [m]
    owner: NDArray[np.int64]  # [m], which link a code belongs to


@dataclass(frozen=True, slots=True, eq=False)
class LinkEvidence:
    """A link at its choice: the numbers of its weights [m], and what each adds to the logit.

    The codes of its URL come first, the known facts come last, as CODES + their column.
    """

    url: str
    anchor: str
    where: NDArray[np.int64]
    adds: NDArray[np.float32]


class Estimate(NamedTuple):
    """The logit of P(relevant) of links [n], and its standard deviation [n]."""

    logit: NDArray[np.float32]
    deviation: NDArray[np.float32]

    @property
    def probability(self) -> NDArray[np.float32]:
        """P(relevant) [n], averaged over the uncertainty of the logit (MacKay, 1992)."""
        return sigmoid(self.logit / np.sqrt(1 + np.pi / 8 * self.deviation**2))


class LinkModel:
    """Weights of codes and of known facts, with their precisions.

    Each group of codes of a link has the norm 1, so that a long URL does not outweigh an anchor.
    `means` [K] and `precisions` [K] are the prior of the weights of known facts, `codes` that of
    codes.
    """

    def __init__(
        self,
        options: LinkOptions,
        means: NDArray[np.float32],
        precisions: NDArray[np.float32],
        codes: LinkPrior = NO_PRIOR,
    ) -> None:
        self.options = options
        self._scales = np.ones(GROUPS, dtype=np.float32)
        self._scales[[group for group in CueGroup if group.name.lower() in options.without]] = 0
        size = GROUPS * GROUP_SIZE
        self.prior = np.concatenate([np.zeros(size, dtype=np.float32), means])
        self.prior[codes.codes] = codes.weights
        self.weights = self.prior.copy()
        self.precisions = np.concatenate(
            [np.full(size, 1 / options.variance, dtype=np.float32), precisions]
        )
        self.squares = np.full(size + len(means), _START, dtype=np.float32)
        self.steps = 0  # changes of weights
        self._changed = np.zeros(size + len(means), dtype=np.int32)  # the last step of each, or 0
        self._known = size
        self._facts = np.arange(size, size + len(means))  # the numbers of known facts

    def read(self, known: NDArray[np.float32], codes: Codes, owner: NDArray[np.int64]) -> Links:
        """Return links as the model reads them, from their codes [m] and the link of each [m]."""
        values = self._scales[codes >> np.uint32(BITS)] * normed(codes, owner, len(known))
        return Links(known, codes, values, owner)

    def estimate(self, links: Links) -> Estimate:
        """Return the logits of links and how sure they are."""
        logits, variances = self.codes(links)
        facts = self.facts(links.known)
        return Estimate(facts.logit + logits, np.sqrt(facts.deviation**2 + variances))

    def codes(self, links: Links) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return what the codes of links add to their logits [n], and its variances [n]."""
        count = len(links.known)
        logits = np.bincount(links.owner, links.values * self.weights[links.codes], count)
        spread = np.bincount(links.owner, links.values**2 / self.precisions[links.codes], count)
        return logits.astype(np.float32), spread.astype(np.float32)

    def facts(self, known: NDArray[np.float32]) -> Estimate:
        """Return what known facts [n, K] add to the logits of links."""
        logits = known @ self.weights[self._known :]
        return Estimate(logits, np.sqrt(known**2 @ (1 / self.precisions[self._known :])))

    def adds(self, link: Links) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the numbers of the weights of one link, and what each adds to its logit."""
        where, values = self._inputs(link)
        return where, values * self.weights[where]

    def fit(self, link: Links, reward: float) -> None:
        """Take one step of AdaGrad on the loss of one link."""
        where, values = self._inputs(link)
        weights = self.weights.take(where)
        error = _probability(float(values @ weights)) - reward
        gradient = error * values + self.options.shrinkage * (weights - self.prior.take(where))
        squares = self.squares.take(where) + gradient**2
        self._note_change(where)
        self.squares[where] = squares
        self.weights[where] = weights - self.options.rate * gradient / np.sqrt(squares)

    def gain(self, link: Links) -> None:
        """Raise the precisions of the weights that a new experience tells about."""
        where, values = self._inputs(link)
        p = _probability(float(values @ self.weights.take(where)))
        self._note_change(where)
        self.precisions[where] += p * (1 - p) * values**2

    def changed(self, since: int) -> NDArray[np.int64]:
        """Return the numbers of the weights that changed after a step."""
        return np.flatnonzero(self._changed > since)

    def state(self) -> bytes:
        """Return the weights that were ever learned, with their precisions."""
        learned = self.changed(0)
        parts = (self.weights, self.squares, self.precisions)
        columns = [part[learned].astype("<f4").tobytes() for part in parts]
        return b"".join([learned.astype("<u4").tobytes(), *columns])

    def restore(self, state: bytes) -> None:
        """Load a state into a new model; raise ValueError if it does not fit."""
        if len(state) % 16:
            raise ValueError("the saved link model is cut off")
        learned = np.frombuffer(state, "<u4", len(state) // 16).astype(np.int64)
        columns = np.frombuffer(state, "<f4", offset=len(state) // 4).reshape(3, -1)
        if len(learned) and learned.max() >= len(self.weights):
            raise ValueError("the saved link model has other weights")
        if not (np.abs(columns) < _HIGHEST).all() or (columns[1:] <= 0).any():
            raise ValueError("the saved link model holds impossible numbers")
        self._note_change(learned)
        self.weights[learned], self.squares[learned], self.precisions[learned] = columns

    def _note_change(self, where: NDArray[np.int64]) -> None:
        self.steps += 1
        self._changed[where] = self.steps

    def _inputs(self, link: Links) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        where = np.concatenate([link.codes, self._facts])
        return where, np.concatenate([link.values, link.known[0]])


def normed(codes: Codes, owner: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Return values [m] of codes of `count` links: those of a group of a link have the norm 1."""
    keys = owner * GROUPS + (codes >> np.uint32(BITS)).astype(np.int64)
    sizes = np.bincount(keys, minlength=count * GROUPS)
    values: NDArray[np.float32] = np.reciprocal(np.sqrt(sizes[keys], dtype=np.float32))
    return values


def _probability(logit: float) -> float:
    """Return what `sigmoid` does, for one logit."""
    return 1 / (1 + math.exp(-max(-_LARGEST, min(_LARGEST, logit))))


def sigmoid(logit: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return 1 / (1 + exp(-logit))."""
    clipped = np.clip(logit, -_LARGEST, _LARGEST)
    probability: NDArray[np.float32] = (1 / (1 + np.exp(-clipped))).astype(np.float32)
    return probability
