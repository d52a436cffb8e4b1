"""What policies are made with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.learning import AgentOptions, LearningOptions, TreeOptions

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
