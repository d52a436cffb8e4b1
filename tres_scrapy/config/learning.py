"""Options of learning: the tree, the agent, exploration, training steps and the link model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tres_scrapy.config.declaration import Group, setting
from tres_scrapy.config.parser import flag, number

LEAST_WEIGHT: Final = 0.05  # of relevance: at `breadth` 1 a domain is worth 20 relevant pages


@dataclass(frozen=True)
class TreeOptions:
    """When a leaf splits; the defaults are from the authors' code."""

    max_depth: int = 18
    min_samples: int = 5  # experience samples that a leaf needs before it may split
    min_share: float = 0.0  # of the samples of a leaf, that each child must get
    bucketed: bool = False  # whether features 2, 3 and 7 are rounded to ten buckets


@dataclass(frozen=True)
class AgentOptions:
    """How the agent learns; `gamma` is from the paper, the other values from the authors' code.

    After every `target_period` updates the learning rate is multiplied by the decay, down to the
    floor. With the authors' updates, at every third step, it reaches a quarter in 20,000 pages;
    with one at every step it would fall so low that long crawls stop learning.
    """

    gamma: float = setting(number(0, 0.999), 0.3, "discount factor of future rewards")
    hidden: tuple[int, int] = (30, 15)
    learning_rate: float = 1e-3  # of Adam
    learning_rate_decay: float = 0.9
    learning_rate_floor: float = 0.25  # share of the first; the authors have 0
    gradient_clip: float = 1.0
    target_period: int = 500  # gradient steps


@dataclass(frozen=True)
class LearningOptions:
    """How TRES explores and learns; a step is one experience added.

    Departures from the authors' code: exploration lasts 30 steps, not 500, to suit short crawls.
    There is one gradient step every `update_period` steps (theirs: every three, after 500), on 64
    experiences (theirs: 60).

    Departures from the paper: it draws one representative from each leaf. Here there are
    `representatives`, or the square root of the size of a big leaf, because Q differs within a
    leaf. The first relevant page of a domain earns `novelty` beside its reward, an intrinsic
    reward (P 5); otherwise the agent stays on sites it already knows.
    """

    representatives: int = 4
    exploration_steps: int = 30  # first steps, in which the leaf is chosen at random
    learning_starts: int = 0  # first steps, which have no gradient step
    update_period: int = 1  # steps per gradient step
    batch_size: int = 64  # experiences used in one gradient step
    replay_capacity: int = 20_000  # most experiences kept
    breadth: float = setting(
        number(0, 1),
        0.05,
        "how much new domains count beside relevance: 0 for harvest alone, 1 for domains above "
        "all; the paper has 0",
        group=Group.EVERYDAY,
    )
    hurry: float | None = setting(
        number(0, 1),
        None,
        "share of the request slots that stays busy when the hosts of better links rest, or while "
        "the crawl has seen few pages: 1 never waits, 0 waits each time; unset: 0.6 with `pages`, "
        "1 without or with CLOSESPIDER_TIMEOUT",
        group=Group.EVERYDAY,
    )

    @property
    def novelty(self) -> float:
        """What the first relevant page of a domain earns beside its relevance.

        With `breadth` b, relevance counts 1 - b and novelty b, both divided by 1 - b.
        """
        return self.breadth / max(1 - self.breadth, LEAST_WEIGHT)


@dataclass(frozen=True)
class LinkOptions:
    """What the link model reads of a link and how it learns."""

    enabled: bool = setting(
        flag,
        True,
        "learn from what links say; 0: decide by the eight features of the paper",
        name="link_model",
    )
    without: tuple[str, ...] = ()  # groups that are not read, for experiments
    variance: float = 0.05  # of each weight before anything is learned
    rate: float = 0.2  # of AdaGrad
    shrinkage: float = 1e-3  # pull of each weight towards its prior
    replays: int = 8  # most earlier experiences learned again at each step
    replay_capacity: int = 5_000  # most experiences kept to learn again
    rescored: int = 50  # waiting links scored again for each fetch
