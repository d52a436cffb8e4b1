"""The interface of a policy: it chooses the next sample and learns from experiences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.tree import Rule
from tres_scrapy.links.model import LinkEvidence
from tres_scrapy.page.text import Page

NO_FEATURES: Final = np.zeros(len(FEATURES), dtype=np.float32)


class Choice(NamedTuple):
    """The samples [n] that a choice was made from, their leaves, and the tree's `splits` then.

    Q(s, a) [n] and the bounds [n], Q with a bonus, are None if Q was not computed. `said` is what
    the chosen link says, None without a link model.
    """

    splits: int
    leaves: NDArray[np.int64]
    rows: Rows
    q_values: NDArray[np.float32] | None
    bounds: NDArray[np.float32] | None = None
    said: LinkEvidence | None = None


class Decision(NamedTuple):
    """The next sample to fetch, its leaf (None for a seed) and Q(s, a) (None if not computed).

    `choice` is None for policies without a tree. The crawl adds the URL and x(s, a) [9] of the
    sample as they are now.
    """

    row: int
    leaf: int | None
    q_value: float | None
    choice: Choice | None = None
    url: str = ""
    x: NDArray[np.float32] = NO_FEATURES


class Experience(NamedTuple):
    """A fetched sample, its x(s, a) [9] when it was chosen, and its reward.

    `grade` says how near a page without a reward came to one, 0 to 1 (see crawl/verdict.py).
    """

    row: int
    x: NDArray[np.float32]
    reward: float
    grade: float = 0.0

    @property
    def target(self) -> float:
        """What a model of links learns: the reward, or the grade of a page without one."""
        return max(self.reward, self.grade)


class PageText(NamedTuple):
    """The text of a fetched page, for policies that read more than x(s, a)."""

    text: str = ""  # title and text
    contexts: Mapping[str, str] = MappingProxyType({})  # URL of a link: the text around it
    probability: float = 0.0  # P(relevant) of the page

    @classmethod
    def of(cls, page: Page, probability: float) -> Self:
        """Return the text of a page that was read with the words around its links."""
        contexts = dict(zip((link.url for link in page.links), page.contexts, strict=False))
        return cls(f"{page.title} {page.text}", contexts, probability)


NO_TEXT = PageText()


class Past(NamedTuple):
    """The experiences of a crawl, oldest first; all arrays have length n."""

    x: NDArray[np.float32]  # [n, 9]
    rewards: NDArray[np.float32]
    rows: Rows
    firsts: Rows  # row of the first outlink of each page
    outlinks: NDArray[np.int64]  # number of outlinks of each page
    sampled: Rows  # row chosen next, -1 if none yet
    grades: NDArray[np.float32]

    @property
    def targets(self) -> NDArray[np.float32]:
        """What a model of links learns of each experience."""
        return np.maximum(self.rewards, self.grades)

    def experiences(self) -> Iterator[Experience]:
        """Yield each experience."""
        columns = (self.rows.tolist(), self.x, self.rewards.tolist(), self.grades.tolist())
        return map(Experience, *columns)


class Policy:
    """Chooses among PENDING samples; a chosen sample is removed from the policy.

    For each page, `observe`, `expand` and `learn` are called in the order of Algorithm 3. A policy
    that `reads_text` gets the text of pages; one that `is_resumable` can be restored from its past;
    one with `learns_q` has a `value`. One that `waits` has chosen nothing last, for a better sample
    is on a host that is soon free.
    """

    reads_text = False
    is_resumable = False
    learns_q = False
    waits = False

    def observe(self, experience: Experience) -> None:
        """Receive an experience, before its page's outlinks are known."""

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Receive the frontier samples of a page's outlinks; there may be no outlinks."""
        raise NotImplementedError

    def readmit(self, rows: Rows) -> None:
        """Take back dropped samples that can be fetched after all."""
        raise NotImplementedError

    def revise(self, rows: Rows) -> None:
        """Take note of samples whose features 4 to 6 have changed."""

    def relearn(self, lessons: Mapping[int, tuple[float, float]]) -> None:
        """Learn what fetched pages say by the topic of now: rewards and targets, by row."""

    def learn(self) -> float | None:
        """Take the gradient step that is due and return its loss, or None without a step."""
        return None

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Return the next sample, never one on a busy host.

        Return None if no sample is ready, or if the policy `waits`.
        """
        raise NotImplementedError

    def value(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of any x [n, 9] as [n]."""
        raise NotImplementedError

    @property
    def rules(self) -> Sequence[Rule]:
        """The splits of the policy's tree, oldest first; the sequence only grows."""
        return ()

    def state(self) -> dict[str, bytes]:
        """Return what was learned apart from the rules, small enough to be saved at every step."""
        return {}

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Load a past and the PENDING samples; raise ValueError if they do not fit."""
        raise NotImplementedError

    def figures(self) -> dict[str, float | str]:
        """Return the figures of the policy, by stat name."""
        return {}
