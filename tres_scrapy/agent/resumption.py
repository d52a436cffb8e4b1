"""The interface of policies that can be restored in a resumed crawl."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.tree import Rule


class Past(NamedTuple):
    """The experiences of a crawl, oldest first; all arrays have length n."""

    x: NDArray[np.float32]  # [n, 9]
    rewards: NDArray[np.float32]
    rows: Rows
    firsts: Rows  # row of the first outlink of each page
    outlinks: NDArray[np.int64]  # number of outlinks of each page
    sampled: Rows  # row chosen next, -1 if none yet


@runtime_checkable
class Resumable(Protocol):
    """A policy that can be restored from its past.

    `rules` only grows. `state` holds the rest of what was learned; it is small enough to be saved
    at every step.
    """

    @property
    def rules(self) -> Sequence[Rule]:
        """The splits of the policy's tree, oldest first; empty without a tree."""

    def state(self) -> dict[str, bytes]:
        """Return the learned state apart from the rules, as named byte strings."""

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Load a past and the PENDING samples; raise ValueError if they do not fit."""


def random_state(random: np.random.Generator) -> bytes:
    """Return the state of a generator for `restore_random`."""
    return json.dumps(random.bit_generator.state).encode()


def restore_random(random: np.random.Generator, state: bytes) -> None:
    """Set a generator to a state that `random_state` returned."""
    random.bit_generator.state = json.loads(state)
