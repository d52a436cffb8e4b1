"""The arguments that policies are created with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.ranking import Patience
from tres_scrapy.config.learning import AgentOptions, LearningOptions, LinkOptions, TreeOptions
from tres_scrapy.lab.webs.graph import Graph
from tres_scrapy.links.model import NO_PRIOR, LinkPrior

AnchorSimilarity = Callable[[Sequence[str]], NDArray[np.float32]]
Labels = Callable[[Sequence[str]], list[bool]]


@dataclass(frozen=True)
class PolicyInputs:
    """The arguments that policies are created with; each policy uses some of them.

    `keywords` begin with the topic's name. `similarity` returns the cosine [n] of each text with
    the keywords, 0 for a text without a known word. `search` is the URL of a search engine with
    {query} in it. `labels` returns the true label of each URL. `graph` holds the
    pages of an offline web and the links between them. `patience` is shared with the scheduler.
    """

    seed: int = 0
    tree: TreeOptions = field(default_factory=TreeOptions)
    agent: AgentOptions = field(default_factory=AgentOptions)
    learning: LearningOptions = field(default_factory=LearningOptions)
    links: LinkOptions = field(default_factory=LinkOptions)
    link_prior: LinkPrior = NO_PRIOR
    keywords: Sequence[str] = ()
    similarity: AnchorSimilarity | None = None
    search: str | None = None
    labels: Labels | None = None
    graph: Graph | None = None
    patience: Patience = field(default_factory=Patience)
