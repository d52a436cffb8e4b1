"""What some of the compared policies need to know beyond what TRES does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.config import Config
from tres_scrapy.config.typed import typed
from tres_scrapy.lab.webs.server import open_web
from tres_scrapy.lab.webs.web import Web
from tres_scrapy.topic.pack import Pack
from tres_scrapy.url.message import TresError

Labels = Callable[[Sequence[str]], list[bool]]


@dataclass(frozen=True)
class RivalInputs(PolicyInputs):
    """The arguments of a policy that TRES is compared with.

    `labels` returns the true label of each URL.
    """

    labels: Labels | None = None


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
