"""The Q-network: an MLP with two hidden layers (P 2.4.2, sizes of the authors' code)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.feature import FEATURES

LEAK: Final = 0.1
MOST: Final = 0.7  # logarithm of the factor by which the MLP changes a prior
_CHUNK: Final = 1_000  # samples at once: larger arrays cost a page fault for each 4 kB

Values = NDArray[np.float32]
Prior = Callable[[Values], Values]  # from x(s, a) [n, 9] to what Q starts from [n]


class QNetwork:
    """Maps x(s, a) [n, 9] to Q [n].

    With f(z) = max(z, LEAK z), the MLP is m = W3 f(W2 f(W1 x^T + b1) + b2) + b3, and Q = m.

    With a `prior` p(x), Q is v + p exp(m): m is the output of the MLP between -MOST and MOST, and v
    one number that is learned for all links, like the state value of a dueling network (Wang et
    al., 2016). Both are 0 at first: before anything is learned, Q is p. A product keeps apart links
    of p = 0.01 and 0.02, which a sum would not. The paper has no prior.

    `parameters` [P] holds v (with `prior`), W1 [30, 9], b1, W2 [15, 30], b2, W3 [1, 15], b3.
    """

    def __init__(
        self, parameters: Values, hidden: tuple[int, int], prior: Prior | None = None
    ) -> None:
        self.parameters = parameters
        self._hidden = hidden
        self._prior = prior
        self._first = int(prior is not None)  # number of the first weight
        self._layers = list(_layers(parameters, hidden, self._first))

    @classmethod
    def seeded(cls, hidden: tuple[int, int], seed: int, prior: Prior | None = None) -> Self:
        """Return a network with random weights (He et al., 2015) and biases of 0."""
        pairs = itertools.pairwise((len(FEATURES), *hidden, 1))
        count = (prior is not None) + sum((fan_in + 1) * fan_out for fan_in, fan_out in pairs)
        network = cls(np.zeros(count, dtype=np.float32), hidden, prior)
        # The numbers of torch.Generator, which drew them before: a seed keeps its network.
        random = np.random.RandomState(seed % 2**32)
        for weight, _ in network._layers[: -1 if prior is not None else None]:
            bound = float(np.float32(np.sqrt(6 / ((1 + LEAK**2) * weight.shape[1]))))
            shares = random.randint(2**32, size=weight.shape, dtype=np.uint32) % 2**24 / 2**24
            weight[:] = shares * (2 * bound) - bound
        return network

    def copy(self) -> QNetwork:
        """Return a network with the same parameters."""
        return QNetwork(self.parameters.copy(), self._hidden, self._prior)

    def q_values(self, x: Values) -> Values:
        """Return Q [n] of x(s, a) [n, 9]."""
        q = np.empty(len(x), dtype=self.parameters.dtype)
        for start in range(0, len(x), _CHUNK):
            some = slice(start, start + _CHUNK)
            q[some] = self._q_of(x[some], self._outputs(x[some])[-1])
        return q

    def loss(self, x: Values, y: Values) -> tuple[float, Values]:
        """Return the mean of (Q - y)^2 over x [n, 9], and its gradient by `parameters` [P].

        Backpropagation: if G [out, n] is the gradient by z = W h + b of a layer, it is G h^T by W,
        the sum over n by b, and W^T G by h. The slope of f is 1 where h > 0, and LEAK elsewhere.
        """
        _, (second, _), (third, _) = self._layers
        h_1, h_2, m = self._outputs(x)
        error = self._q_of(x, m) - y
        gradient = np.empty_like(self.parameters)
        by_m = error[None] * (2 / len(x))  # [1, n], the gradient by Q
        if self._prior is not None:
            gradient[0] = by_m.sum()
            by_m *= self._prior(x) * _factor(m) * (np.abs(m) <= MOST)
        by_2 = _back(third, by_m, h_2)
        by_1 = _back(second, by_2, h_1)
        parts = _layers(gradient, self._hidden, self._first)
        for (by_weight, by_bias), by_z, h in zip(
            parts, (by_1, by_2, by_m), (x.T, h_1, h_2), strict=True
        ):
            np.matmul(by_z, h.T, out=by_weight)
            np.sum(by_z, axis=1, out=by_bias)
        return float(error @ error) / len(x), gradient

    def _outputs(self, x: Values) -> tuple[Values, Values, Values]:
        """Return the outputs of the hidden layers [width, n] and that of the MLP, m [1, n]."""
        first, second, (weight, bias) = self._layers
        h_1 = _forward(*first, x.T)
        h_2 = _forward(*second, h_1)
        return h_1, h_2, weight @ h_2 + bias

    def _q_of(self, x: Values, m: Values) -> Values:
        """Return Q [n] of x [n, 9] and m [1, n]."""
        q: Values = m[0]
        if self._prior is not None:
            q = self.parameters[0] + self._prior(x) * _factor(q)
        return q


def _forward(weight: Values, bias: Values, h: Values) -> Values:
    """Return f(W h + b)."""
    z: Values = weight @ h
    z += bias[:, None]
    np.maximum(z, LEAK * z, out=z)
    return z


def _back(weight: Values, by_z: Values, h: Values) -> Values:
    """Return the gradient by the sums whose f is h, from that by z = W h + b."""
    by_h = weight.T @ by_z
    return np.where(h > 0, by_h, LEAK * by_h)


def _factor(m: Values) -> Values:
    factor: Values = np.exp(np.minimum(np.maximum(m, -MOST), MOST))  # np.clip takes longer
    return factor


def _layers(
    parameters: Values, hidden: tuple[int, int], start: int
) -> Iterator[tuple[Values, Values]]:
    """Yield W [out, in] and b [out] of each layer as views of `parameters` [P] from `start` on."""
    for fan_in, fan_out in itertools.pairwise((len(FEATURES), *hidden, 1)):
        middle = start + fan_in * fan_out
        end = middle + fan_out
        yield parameters[start:middle].reshape(fan_out, fan_in), parameters[middle:end]
        start = end
