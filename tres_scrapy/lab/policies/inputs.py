"""What some of the compared policies need to know beyond what TRES does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed
from tres_scrapy.lab.webs.graph import Graph, read_graph
from tres_scrapy.lab.webs.search import SEARCH
from tres_scrapy.lab.webs.server import open_web
from tres_scrapy.lab.webs.web import FiniteWeb, Web
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.topic.classifier import WordVectors
from tres_scrapy.topic.pack import Pack
from tres_scrapy.url.message import TresError

AnchorSimilarity = Callable[[Sequence[str]], NDArray[np.float32]]
Labels = Callable[[Sequence[str]], list[bool]]


@dataclass(frozen=True)
class RivalInputs(PolicyInputs):
    """The arguments of a policy that TRES is compared with.

    `keywords` are those of the topic; for a search engine, the name of the topic comes first.
    `similarity` returns the cosine [n] of each text with the keywords, 0 for a text without a known
    word. `search` is the URL of a search engine with {query} in it. `labels` returns the true label
    of each URL. `graph` holds the pages of an offline web and the links between them.
    """

    keywords: Sequence[str] = ()
    similarity: AnchorSimilarity | None = None
    search: str | None = None
    labels: Labels | None = None
    graph: Graph | None = None


def with_similarity(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> RivalInputs:
    """Add the similarity of anchors; raise TresError if the pack has no word vectors."""
    vectors: WordVectors | None = getattr(pack.classifier, "vectors", None)
    if vectors is None:
        raise TresError(
            f"it needs a pack with word vectors: train {pack.name!r} with --classifier widebilstm"
        )
    return RivalInputs(**vars(setup), similarity=Similarity(vectors, pack.given))


def with_search(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> RivalInputs:
    """Add the search engine, that of the offline web if the user gives none, and keywords."""
    search = config.search_url or (SEARCH if config.web.kind else None)
    keywords = (" ".join(config.topics), *pack.given)
    return RivalInputs(**vars(setup), search=search, keywords=keywords)


def with_keywords(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> RivalInputs:
    """Add the keywords of the pack, as the user gave them."""
    return RivalInputs(**vars(setup), keywords=pack.given)


def with_labels(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> RivalInputs:
    """Add the true labels; raise TresError if the crawl has no offline web."""
    web = web or _open_web(config)
    if web is None:
        raise TresError(f"it needs the labels of an offline web: add {typed('web', 'synthetic')}")
    return RivalInputs(**vars(setup), labels=web.labels)


def with_graph(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> RivalInputs:
    """Add the links; raise TresError if the crawl has no offline web, or one without an end."""
    web = web or _open_web(config)
    if not isinstance(web, FiniteWeb):
        raise TresError(
            f"it needs the links of an offline web: add {typed('web', 'recorded')} or "
            f"{typed('web', 'corpus')}"
        )
    return RivalInputs(**vars(setup), graph=read_graph(web, config.reading))


class Similarity:
    """The cosine of the mean word vectors of a text and of the keywords.

    Raise TresError if no keyword has a vector.
    """

    def __init__(self, vectors: WordVectors, keywords: Iterable[str]) -> None:
        self._vectors = vectors
        self._topic = self._direction(keywords)
        if not self._topic.any():
            raise TresError("no keyword has a word vector: add a more common keyword")

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the cosine [n] of each text with the keywords, 0 if it has no known word."""
        words = ([w for w in tokenise(text) if w not in STOP_WORDS] for text in texts)
        cosines = [float(self._direction(each) @ self._topic) for each in words]
        return np.array(cosines, dtype=np.float32)

    def _direction(self, words: Iterable[str]) -> NDArray[np.float32]:
        """Return the mean direction of the words, of length one; zero without a known word."""
        mean: NDArray[np.float32] = self._vectors.unit(words).sum(axis=0)
        length = float(np.linalg.norm(mean))
        return mean / length if length > 0 else mean


def _open_web(config: Config) -> Web | None:
    web, topic = config.web, str(config.topic)
    return open_web(web.kind, topic, web.seed, web.data, web.labels) if web.kind else None
