"""What policies are made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.ddqn import AgentOptions
from tres_scrapy.frontier.tree import TreeOptions


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

    representatives: int = 4
    exploration_steps: int = 30
    warm_up_steps: int = 500
    warm_up_updates: int = 4
    update_period: int = 1
    batch_size: int = 64
    replay_capacity: int = 20_000
    new_domains: float = 0.2
    ucb: float = 1.0


AnchorSimilarity = Callable[[Sequence[str]], NDArray[np.float32]]
Labels = Callable[[Sequence[str]], list[bool]]


@dataclass(frozen=True)
class Setup:
    """What policies are made with; each takes what it knows.

    `keywords` begin with the topic's name; `similarity` gives the cosine [n] of each text with the
    keywords, 0 for a text without a known word; `search` is the URL of a search endpoint with
    {query} in it; `labels` says truly which URLs bring a relevant page.
    """

    seed: int = 0
    tree: TreeOptions = field(default_factory=TreeOptions)
    agent: AgentOptions = field(default_factory=AgentOptions)
    learning: LearningOptions = field(default_factory=LearningOptions)
    keywords: Sequence[str] = ()
    similarity: AnchorSimilarity | None = None
    search: str | None = None
    labels: Labels | None = None
