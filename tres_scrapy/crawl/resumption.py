"""What brings a policy back to where an interrupted crawl has left it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.tree import Rule


class Past(NamedTuple):
    """The experiences of a crawl in their order; arrays of one length."""

    x: NDArray[np.float32]  # [n, 8]
    rewards: NDArray[np.float32]
    firsts: Rows  # the first outlink of each page
    outlinks: NDArray[np.int64]  # and how many there are
    sampled: Rows  # what was chosen next, -1 where nothing was yet


@runtime_checkable
class Resumable(Protocol):
    """A policy that can be told its past.

    `rules` only ever grows; `state` is the rest of what it has learned, small enough to be written
    down at every step.
    """

    @property
    def rules(self) -> Sequence[Rule]:
        """The splits of the policy's tree, if it has one, in their order."""

    def state(self) -> dict[str, bytes]:
        """Return what changes from step to step."""

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Take over a past and the frontier samples that are left; ValueError: it is none."""


def random_state(random: np.random.Generator) -> bytes:
    """Return the state of a generator, to be restored by `restore_random`."""
    return json.dumps(random.bit_generator.state).encode()


def restore_random(random: np.random.Generator, state: bytes) -> None:
    """Let a generator go on from the state of another."""
    random.bit_generator.state = json.loads(state)
