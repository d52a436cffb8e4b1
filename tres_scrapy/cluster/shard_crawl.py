"""Algorithm 3 in one shard of a crawl: other shards fetch the links to their domains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tres_scrapy.agent.policy import Decision, Experience, Policy
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.actor_policy import ActorPolicy
from tres_scrapy.cluster.message import UNLIMITED
from tres_scrapy.cluster.router import LinkBatch, Router
from tres_scrapy.config.config import Config
from tres_scrapy.crawl.crawl import NO_ROWS, Crawl
from tres_scrapy.crawl.failure import REDIRECT_LIMIT, Failure
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import ACTION, NO_PATH
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.topic.pack import Judged

MAX_HOPS: Final = 10  # redirects from shard to shard, one after the other


class ShardCrawl(Crawl):
    """A crawl that fetches only the domains of its shard, and at most as many pages as granted.

    The `router` packs the links to domains of other shards; `receive` adds those that come from
    other shards.
    """

    def __init__(
        self,
        store: SampleStore,
        policy: Policy,
        limit: int | None = None,
        *,
        router: Router,
        **options: Any,
    ) -> None:
        super().__init__(store, policy, limit, **options)
        self.router = router
        self.granted = UNLIMITED  # pages that it may fetch for now
        self._hops: dict[int, int] = {}  # by row, the redirects from shard to shard before it
        self._away: tuple[int, Outlinks] = NO_PARENT, NO_LINKS  # a page's links to other shards

    def owns(self, url: str) -> bool:
        """Return whether this shard owns the domain of a URL."""
        return self.router.owns(url)

    def next(self, available: Availability = ANY_HOST) -> Decision | None:
        """Lease the next sample to fetch; return None if no page is granted or none can be."""
        if self.pages + self.leased >= self.granted:
            self.available, self.waits = available, False
            return None
        return super().next(available)

    def receive(self, batches: Sequence[LinkBatch]) -> None:
        """Add the links that pages of other shards have to domains of this one."""
        found = [NO_ROWS]
        for batch in batches:
            if batch.path == NO_PATH:
                rows = self.add_seeds(batch.links)
            else:
                rows = self._add(self.store.add_guest(batch.url, batch.path), batch.links)
            if not batch.hops:
                found.append(rows)
                continue
            self._hops.update(dict.fromkeys(rows.tolist(), batch.hops))
            if batch.path != NO_PATH:  # else a seed, which is first anyway
                self._first.push(rows, np.zeros(len(rows)))
        self.policy.readmit(np.concatenate(found))

    def redirect_away(self, row: int, url: str) -> Failure:
        """Send a leased row that was redirected to a domain of another shard to its owner.

        Return the failure to book. A chain of such redirects ends after MAX_HOPS.
        """
        hops = self._hops.pop(row, 0) + 1
        if hops > MAX_HOPS:
            return REDIRECT_LIMIT
        store, parent = self.store, self.store["parent"][row]
        static = store.features(np.array([row]))[:, ACTION]
        links = Outlinks([url], [store.anchors[row]], static, store.cues.take(np.array([row])))
        page = store.url(row) if parent == NO_PARENT else store.url(parent)
        self.router.send(page, links, store.path_to(parent), hops)
        return super().redirect_away(row, url)

    def _add(self, parent: int, links: Outlinks, *, is_answer: bool = False) -> Rows:
        """Add the links to own domains; the others are packed for their owners."""
        if links.urls and parent not in self.store.guests:
            url, path = self.store.url(parent), self.store.path_to(parent)
            links, away = self.router.divide(url, path, links)
            self._away = parent, away
        return super()._add(parent, links, is_answer=is_answer)

    def _expand(self, experience: Experience, outlinks: Rows, judged: Judged | None = None) -> None:
        if isinstance(self.policy, ActorPolicy):
            page, away = self._away
            self.policy.note_away(experience.row, away if page == experience.row else NO_LINKS)
        super()._expand(experience, outlinks, judged)


def make_shard_crawl(
    config: Config, store: SampleStore, inputs: PolicyInputs, **options: Any
) -> ShardCrawl:
    """Return the crawl of a shard; a shard that is alone needs no other process to learn."""
    number, count = config.shard.number, config.shard.count
    router = Router(number, count)
    policy = ActorPolicy(store, inputs) if count > 1 else make_policy(config.policy, store, inputs)
    return ShardCrawl(store, policy, config.pages, router=router, **options)
