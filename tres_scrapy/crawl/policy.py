"""What a policy is: the answer to "who is next", and what it is told to learn that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.pool import Rows


class Choice(NamedTuple):
    """What a sample was chosen among: samples [n] of leaves of a tree of so many `splits`.

    Q(s, a) [n] is None if none was asked, and so are its upper confidence bounds [n].
    """

    splits: int
    leaves: NDArray[np.int64]
    rows: Rows
    q_values: NDArray[np.float32] | None
    bounds: NDArray[np.float32] | None = None


class Decision(NamedTuple):
    """The sample to fetch next, its leaf (None for a seed) and Q(s, a) (None if none was asked).

    `is_query` says that it asks a search engine: what it brings is a list of links, no page of the
    crawl. `choice` is None where no tree was asked.
    """

    row: int
    leaf: int | None
    q_value: float | None
    is_query: bool = False
    choice: Choice | None = None


class Experience(NamedTuple):
    """A fetched sample, x(s, a) [8] as it was when it was chosen, and its reward."""

    row: int
    x: NDArray[np.float32]
    reward: float


class PageText(NamedTuple):
    """What is written on a fetched page, for the policies that read more than x(s, a)."""

    text: str = ""  # title and text
    contexts: Mapping[str, str] = MappingProxyType({})  # by the URL of a link, the words around it
    probability: float = 0.0  # P(relevant) of the page


NO_TEXT = PageText()


class Policy(Protocol):
    """Chooses among PENDING samples; a chosen sample is no longer the policy's.

    A page brings `observe`, then `expand`, then `learn`: the order of Algorithm 3.
    """

    def observe(self, experience: Experience) -> None:
        """Take in an experience, before its page's outlinks are known."""

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Take in the frontier samples that a page's outlinks have become, perhaps none."""

    def readmit(self, rows: Rows) -> None:
        """Take back samples that it dropped and that can be taken after all."""

    def learn(self) -> float | None:
        """Take the gradient step that is due, if one is, and return its loss."""

    def select(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Return the next sample, none of a busy host; None when there is none to give now."""

    def figures(self) -> dict[str, float | str]:
        """Return what the policy reports of itself, by the names of the crawl's stats."""


@runtime_checkable
class Valuing(Protocol):
    """A policy that has learned what a fetch is worth."""

    def value(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of any x [n, 8] as [n]."""
