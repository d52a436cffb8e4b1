"""How TRES learns: the tree, the agent, and the steps of exploration and learning."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, number, whole


@dataclass(frozen=True)
class TreeOptions:
    """When a leaf splits; the defaults are those of the authors' code."""

    max_depth: int = setting(whole(1), 18, "depth of the tree", name="tree_max_depth")
    min_samples: int = setting(
        whole(2), 5, "experience samples from which a leaf may split", name="tree_min_samples"
    )
    min_share: float = setting(
        number(0, 0.5), 0.0, "share of them that each child keeps at least", name="tree_min_share"
    )
    bucketed: bool = setting(
        flag,
        False,
        "cut features 2, 3 and 7 into ten buckets for the tree",
        name="bucketed_features",
    )


@dataclass(frozen=True)
class AgentOptions:
    """What the agent learns with; `gamma` is the paper's, the rest stands in the authors' code.

    The rate is cut by the decay at each `target_period` of updates, of which they take one in
    three steps, and never below LOWEST_RATE: a crawl of any length goes on learning.
    """

    gamma: float = setting(number(0, 0.999), 0.3, "discount of future reward")
    hidden: tuple[int, int] = (30, 15)
    learning_rate: float = setting(number(0, 1), 1e-3, "Adam's rate")
    learning_rate_decay: float = setting(
        number(0, 1), 0.9, "its factor at each target update, down to a quarter of the first"
    )
    gradient_clip: float = 1.0
    target_period: int = setting(whole(1), 500, "gradient steps between target updates")


@dataclass(frozen=True)
class LearningOptions:
    """How TRES explores and learns; a step is an experience taken in.

    Departures from the authors' code: exploration lasts 30 steps, not 500, which short crawls
    cannot afford; in the warm-up, every step brings `warm_up_updates` gradient steps, for then
    experiences are few; later there is one every `update_period` steps, where they take one in
    three, of 64 experiences, not 60. From the paper: it draws one representative of each leaf;
    here they are `representatives`, and of a big leaf the square root of its size, for within a
    leaf Q still tells samples apart. A share `new_domains` of the choices is kept for domains that
    were never visited, the best of them: otherwise the agent stays on the sites that it knows to
    be good. To Q is added `ucb` times the width of its confidence (LinUCB): what is like nothing
    fetched so far is tried, or the agent may never learn that, say, keywords in URLs are a good
    sign.
    """

    representatives: int = setting(
        whole(1),
        4,
        "samples of each leaf that Q is asked for, or the root of their number; 1: the paper's one",
    )
    exploration_steps: int = setting(whole(0), 30, "steps in which the leaf is drawn uniformly")
    warm_up_steps: int = setting(whole(0), 500, "steps that bring several gradient steps each")
    warm_up_updates: int = setting(whole(0, 1000), 4, "gradient steps of a step of the warm-up")
    update_period: int = setting(whole(1), 1, "steps between gradient steps")
    batch_size: int = setting(whole(1, 10_000), 64, "experiences learnt from in a gradient step")
    replay_capacity: int = setting(whole(1, 10**8), 20_000, "experiences kept to learn from")
    new_domains: float = setting(
        number(0, 1), 0.2, "share of the choices kept for domains never visited; 0: the paper's"
    )
    ucb: float = setting(number(0, 100), 1.0, "widths of its confidence added to Q; 0: the paper's")
