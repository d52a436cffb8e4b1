"""A small crawl in shards in memory, and the records of its shards."""

import numpy as np
from judged import judged, told

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.cluster.router import LinkBatch, Router
from tres_scrapy.cluster.shard_crawl import ShardCrawl
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.run.run_file import HealthPoint
from tres_scrapy.run.writer import Writer

SEED = "http://0.test/"


class ShardedRun:
    """Crawls round by round, a page of each shard a second; batches arrive before the next round.

    `parents` are the pages on which links were found, by URL; `order` are the fetched URLs.
    """

    def __init__(self, folder, shards=3, pages=40, skew=0.0):
        self.folder, self.shards, self.skew = folder, shards, skew
        self.random = np.random.default_rng(0)
        self.crawls = [self._crawl(shard, pages) for shard in range(shards)]
        self.writers = [self._writer(shard) for shard in range(shards)]
        self.parents, self.order, self.round, self.relevant = {}, [], 0, 0
        actions = np.zeros((1, 3), dtype=np.float32)
        owner = self.crawls[0].router.owner(SEED)
        self.crawls[owner].add_seeds(Outlinks([SEED], [""], actions))

    def _crawl(self, shard, pages):
        store = SampleStore(DomainLedger())
        learning = LearningOptions(exploration_steps=5)
        policy = make_policy("tres", store, PolicyInputs(0, learning=learning))
        return ShardCrawl(store, policy, pages, router=Router(shard, self.shards))

    def path(self, shard):
        return self.folder / f"shard-{shard}" / "tres.run"

    def _writer(self, shard):
        meta = {"topic": "food", "policy": "tres", "started": f"2026{shard}"}
        settings = {"TRES_SHARDS": str(self.shards), "TRES_SHARD": str(shard), "A": "1"}
        return Writer.open(self.path(shard), self.crawls[shard], meta, settings, 100.0)

    def run(self, rounds):
        """Fetch a page in each shard that has a link, round by round."""
        for _ in range(rounds):
            self.round += 1
            for shard in range(self.shards):
                self._fetch(shard)
                for crawl in self.crawls:
                    for to, data in crawl.router.take():
                        self.crawls[to].receive([LinkBatch.unpacked(data)])
        return self

    def _fetch(self, shard):
        crawl = self.crawls[shard]
        if (decision := crawl.next()) is None:
            return
        url, time = crawl.store.url(decision.row), self._time(shard)
        self.order.append((time, url))
        if decision.row % 7 == 5:
            booking = crawl.book(decision.row, Failure("http_404"))
        else:
            numbers = self.random.integers(0, 60, 6)
            links = [f"http://{n}.test/{self.round}/{shard}/{i}" for i, n in enumerate(numbers)]
            self.parents |= dict.fromkeys(links, url)
            good = float(decision.row % 2)
            self.relevant += int(good)
            actions = self.random.random((6, 3)).astype(np.float32)
            booking = crawl.book(decision.row, judged(good), Outlinks(links, links, actions))
        scores = {"food": 0.5, "sports": shard / 10}
        found = told(booking, f"title {url}", "text", scores=scores, is_foreign=True)
        self.writers[shard].note(found, time)

    def _time(self, shard):
        return 100.0 + self.round + 0.1 * shard + self.skew * shard

    def flush(self, *shards):
        """Write the records of some shards, or of all."""
        for shard in shards or range(self.shards):
            self.writers[shard].note_health(
                HealthPoint(self._time(shard), 1000, {"200": self.round, "404": 1})
            )
            self.writers[shard].flush(self._time(shard))

    def close(self):
        """Close the records as shards do that end."""
        self.flush()
        for shard, writer in enumerate(self.writers):
            writer.close(self._time(shard), "page_limit", left="", gone=f"h{shard}.test")
        return self

    def trail(self, url):
        """Return the URLs from the seed to a page."""
        trail = [url]
        while trail[-1] in self.parents:
            trail.append(self.parents[trail[-1]])
        return trail[::-1]
