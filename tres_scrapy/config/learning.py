"""Options of learning: the tree, the agent, exploration and training steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tres_scrapy.config.declaration import Group, setting
from tres_scrapy.config.parser import flag, number, whole

LEAST_WEIGHT: Final = 0.05  # of relevance: at `breadth` 1 a domain is worth 20 relevant pages


@dataclass(frozen=True)
class TreeOptions:
    """When a leaf splits; the defaults are from the authors' code."""

    max_depth: int = setting(whole(1), 18, "largest depth of the tree", name="tree_max_depth")
    min_samples: int = setting(
        whole(2),
        5,
        "experience samples that a leaf needs before it may split",
        name="tree_min_samples",
    )
    min_share: float = setting(
        number(0, 0.5),
        0.0,
        "smallest share of a leaf's samples that each child must get",
        name="tree_min_share",
    )
    bucketed: bool = setting(
        flag,
        False,
        "round features 2, 3 and 7 to ten buckets for the tree",
        name="bucketed_features",
    )


@dataclass(frozen=True)
class AgentOptions:
    """How the agent learns; `gamma` is from the paper, the other values from the authors' code.

    After every `target_period` updates the learning rate is multiplied by the decay, down to the
    floor. With the authors' updates, at every third step, it reaches a quarter in 20,000 pages;
    with one at every step it would fall so low that long crawls stop learning.
    """

    gamma: float = setting(number(0, 0.999), 0.3, "discount factor of future rewards")
    hidden: tuple[int, int] = (30, 15)
    learning_rate: float = setting(number(0, 1), 1e-3, "learning rate of Adam")
    learning_rate_decay: float = setting(
        number(0, 1),
        0.9,
        "factor on the learning rate at each target update, down to the floor",
    )
    learning_rate_floor: float = setting(
        number(0, 1), 0.25, "lowest learning rate, as a share of the first; the authors have 0"
    )
    gradient_clip: float = 1.0
    target_period: int = setting(whole(1), 500, "gradient steps between target updates")


@dataclass(frozen=True)
class LearningOptions:
    """How TRES explores and learns; a step is one experience added.

    Departures from the authors' code: exploration lasts 30 steps, not 500, to suit short crawls.
    There is one gradient step every `update_period` steps (theirs: every three, after 500), on 64
    experiences (theirs: 60).

    Departures from the paper: it draws one representative from each leaf. Here there are
    `representatives`, or the square root of the size of a big leaf, because Q differs within a
    leaf. The first relevant page of a domain earns `novelty` beside its reward, an intrinsic
    reward (P 5); otherwise the agent stays on sites it already knows. `ucb` times the width of the
    confidence interval of Q is added to Q (LinUCB), so that unfamiliar links are tried.
    """

    representatives: int = setting(
        whole(1),
        4,
        "samples of each leaf that Q rates, or the root of its size if larger; the paper has 1",
    )
    exploration_steps: int = setting(
        whole(0), 30, "first steps, in which the leaf is chosen at random"
    )
    learning_starts: int = setting(whole(0), 0, "first steps, which have no gradient step")
    update_period: int = setting(whole(1), 1, "steps per gradient step")
    batch_size: int = setting(whole(1, 10_000), 64, "experiences used in one gradient step")
    replay_capacity: int = setting(
        whole(1, 10**8), 20_000, "most experiences kept in the replay memory"
    )
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
        "share of the request slots that stays busy when the hosts of better links rest: 1 never "
        "waits, 0 waits each time; unset: 0.6 with `pages`, 1 without or with CLOSESPIDER_TIMEOUT",
        group=Group.EVERYDAY,
    )
    ucb: float = setting(
        number(0, 100),
        1.0,
        "with `link_model=0`, weight of the confidence bonus added to Q; the paper has 0",
    )

    @property
    def novelty(self) -> float:
        """What the first relevant page of a domain earns beside its relevance.

        With `breadth` b, relevance counts 1 - b and novelty b, both divided by 1 - b.
        """
        return self.breadth / max(1 - self.breadth, LEAST_WEIGHT)

    def learns_at(self, steps: int) -> bool:
        """Return whether a gradient step is due after so many steps."""
        return steps >= self.learning_starts and steps % self.update_period == 0
