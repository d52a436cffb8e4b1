"""The Q-network, its optimiser Adam, and Double DQN over varying numbers of actions (P 2.4.2)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.learning import AgentOptions, LearningOptions
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import FEATURES

BETA: Final = 0.9, 0.999  # of Adam: of the mean, of the mean square
EPSILON: Final = 1e-8
LEAK: Final = 0.1
MAX_LOG: Final = 0.7  # of the factor by which the MLP changes a prior
_CHUNK: Final = 1_000  # samples at once: larger arrays cost a page fault for each 4 kB
_LARGEST: Final = 1e6  # weight allowed in a file: no sum of products overflows
_TINY: Final = 1e-6  # added to the norm of a gradient before it divides

Values = NDArray[np.float32]
Prior = Callable[[Values], Values]  # from x(s, a) [n, 9] to what Q starts from [n]
Features = Callable[[NDArray[np.int64]], NDArray[np.float32]]


class QNetwork:
    """Maps x(s, a) [n, 9] to Q [n].

    With f(z) = max(z, LEAK z), the MLP is m = W3 f(W2 f(W1 x^T + b1) + b2) + b3, and Q = m.

    With a `prior` p(x), Q is v + p exp(m): m is the output of the MLP between -MAX_LOG and MAX_LOG,
    and v one number that is learned for all links, like the state value of a dueling network (Wang
    et al., 2016). Both are 0 at first: before anything is learned, Q is p. A product keeps apart
    links of p = 0.01 and 0.02, which a sum would not. The paper has no prior.

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
            by_m *= self._prior(x) * _factor(m) * (np.abs(m) <= MAX_LOG)
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
    factor: Values = np.exp(np.minimum(np.maximum(m, -MAX_LOG), MAX_LOG))  # np.clip takes longer
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


class Batch(NamedTuple):
    """Experiences and their candidate actions A~ in one flat array.

    Experience i has `counts[i]` candidates; those of experience 0 come first.
    """

    x: NDArray[np.float32]  # [B, 9]
    rewards: NDArray[np.float32]  # [B]
    candidates: Rows  # [sum of counts]
    counts: NDArray[np.int64]  # [B]


def learns_at(options: LearningOptions, steps: int) -> bool:
    """Return whether a gradient step is due after so many steps."""
    return steps >= options.learning_starts and steps % options.update_period == 0


class DoubleDQN:
    """An online Q-network chooses the best action; a target Q-network evaluates it."""

    def __init__(self, options: AgentOptions, seed: int, prior: Prior | None = None) -> None:
        self.options = options
        self.updates = 0
        self.skipped = 0  # updates whose gradient was not finite
        self.learning_rate = options.learning_rate  # the current one
        self.online = QNetwork.seeded(options.hidden, seed, prior)
        self.target = self.online.copy()
        self._optimizer = Adam(self.online.parameters)

    def state(self) -> NDArray[np.float32]:
        """Return the learned state, except the number of updates, as one vector [4 P].

        For P parameters it holds the online network, the target network and Adam's two means.
        """
        return np.concatenate(self._parts)

    def restore(self, state: NDArray[np.float32], updates: int) -> None:
        """Load a state [4 P] saved after `updates`; raise ValueError if it does not fit."""
        size = len(self.online.parameters)
        known = len(state) == 4 * size and updates >= 0 and (np.abs(state) <= _LARGEST).all()
        if not known or (state[3 * size :] < 0).any():  # the last part holds mean squares
            raise ValueError("the saved state does not fit this agent")
        for part, saved in zip(self._parts, np.split(state, 4), strict=True):
            part[:] = saved
        self.updates = self._optimizer.steps = updates
        self.learning_rate = self.options.learning_rate
        for _ in range(updates // self.options.target_period):
            if not self._cut_rate():
                break

    def q_values(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of the online network for x [n, 9] as [n]."""
        return self.online.q_values(x)

    def targets(self, batch: Batch, features: Features) -> NDArray[np.float32]:
        """Return y [B]: r + gamma Q_target(argmax over A~ of Q_online), or r if A~ is empty."""
        y = batch.rewards.copy()
        some = batch.counts > 0
        if some.any():
            x = features(batch.candidates)
            best = _argmax_each(self.q_values(x), batch.counts[some])
            y[some] += self.options.gamma * self.target.q_values(x[best])
        return y

    def update(self, batch: Batch, features: Features) -> float:
        """Take one gradient step on mean (y - Q)^2 and return that loss.

        `features` returns the current x(s, a) of candidate rows. A step whose gradient is not
        finite is skipped and counted, because it would make every Q NaN.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            loss, gradient = self.online.loss(batch.x, self.targets(batch, features))
            norm = math.sqrt(gradient @ gradient)
        if not math.isfinite(norm):
            self.skipped += 1
            return loss
        gradient *= min(1.0, self.options.gradient_clip / (norm + _TINY))
        self._optimizer.step(gradient, self.learning_rate)
        self.updates += 1
        if self.updates % self.options.target_period == 0:
            self.target.parameters[:] = self.online.parameters
            self._cut_rate()
        return loss

    def _cut_rate(self) -> bool:
        """Lower the learning rate one step; return whether it changed."""
        before, options = self.learning_rate, self.options
        lowest = options.learning_rate * options.learning_rate_floor
        self.learning_rate = max(lowest, before * options.learning_rate_decay)
        return self.learning_rate < before

    @property
    def _parts(self) -> tuple[NDArray[np.float32], ...]:
        adam = self._optimizer
        return self.online.parameters, self.target.parameters, adam.mean, adam.square


def _argmax_each(values: NDArray[np.float32], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of the first highest value of each consecutive group of `counts` > 0."""
    starts = np.cumsum(counts) - counts
    highest = np.repeat(np.maximum.reduceat(values, starts), counts)
    positions = np.flatnonzero(values == highest)
    first: NDArray[np.int64] = positions[np.searchsorted(positions, starts)]
    return first
