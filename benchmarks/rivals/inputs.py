"""What some rivals need to know beyond what TRES does: keywords, labels, the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rivals.graph import FiniteWeb, Graph, read_graph
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed
from tres_scrapy.lab.webs.server import open_web
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.topic.pack import Pack
from tres_scrapy.url.message import TresError


@dataclass(frozen=True)
class KeywordInputs(PolicyInputs):
    """The arguments of a policy that looks for the keywords of the topic."""

    keywords: Sequence[str] = ()


def with_keywords(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> KeywordInputs:
    """Add the keywords of the pack, as the user gave them."""
    return KeywordInputs(**vars(setup), keywords=pack.given)


@dataclass(frozen=True)
class RivalInputs(PolicyInputs):
    """The arguments of a policy that knows the labels; `labels` returns that of each URL."""

    labels: Callable[[Sequence[str]], list[bool]] | None = None


def with_labels(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> RivalInputs:
    """Add the true labels; raise TresError if the crawl has no offline web."""
    web = web or open_web_of(config)
    if web is None:
        raise TresError(f"it needs the labels of an offline web: add {typed('web', 'synthetic')}")
    return RivalInputs(**vars(setup), labels=web.labels)


def open_web_of(config: Config) -> Web | None:
    """Return the offline web of a crawl, None without one."""
    web, topic = config.web, str(config.topic)
    return open_web(web.kind, topic, web.seed, web.data, web.labels) if web.kind else None


@dataclass(frozen=True)
class GraphInputs(PolicyInputs):
    """The arguments of a policy that knows the pages and links of an offline web."""

    graph: Graph | None = None


def with_graph(
    setup: PolicyInputs, config: Config, pack: Pack, web: Web | None = None
) -> GraphInputs:
    """Add the links; raise TresError if the crawl has no offline web, or one without an end."""
    web = web or open_web_of(config)
    if not isinstance(web, FiniteWeb):
        raise TresError(
            f"it needs the links of an offline web: add {typed('web', 'recorded')} or "
            f"{typed('web', 'corpus')}"
        )
    return GraphInputs(**vars(setup), graph=read_graph(web, config.reading))
