"""SB-CLASSIFIER: a sleeping bandit over clusters of links (Gauquier, Manolescu, Senellart, 2026).

Links are clustered by the tags that lead to them on their page (link_cluster.py). The clusters are
the arms of a sleeping bandit (sleeping_bandit.py): an arm sleeps while it has no link that can be
fetched. A random link of the chosen arm is fetched. Parameters are those of the paper and of the
authors' code: pairs of tags in 2^12 dimensions, cosine 0.75, alpha = 2 sqrt(2). Departures:

- The paper looks for data files. The reward of a page is the number of new links to files on it,
  and files are fetched at once, without the bandit. To know files by their URLs it has a
  classifier, which gives it its name. Here the relevant pages are themselves pages with links, so
  the reward is 1 for a relevant page and 0 for others, and there is no such classifier.
- A failed fetch has reward 0, like any experience of a crawl. In the code it does not count, and
  its link leaves the centroid again.
- t counts the choices; in the code it counts all requests, also for files.
- A URL that several links lead to is in the arm of each; in the code, in that of the first.
- Pairs of tags are hashed by CRC-32, and pairs that collide are added. The code numbers pairs as
  they appear, hashes the numbers, and takes the mean where they collide.
- The nearest centroid is found by comparing all, in the code by an approximate index (HNSW).
- A path has at most the 24 tags next to the link, each with three names: its id and classes.
- It crawls many sites with the same arms; the paper crawls one site. The code's rules against
  traps, on the length and the repetitions of a URL, are left to MAX, which all policies have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText, Policy
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.sampling import LeafPool, representatives
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.rivals.link_cluster import LinkClusters
from tres_scrapy.lab.rivals.sleeping_bandit import SleepingBandit


class SbClassifierPolicy(Policy):
    """Fetches a random link of the arm with the highest upper bound of its mean reward."""

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        self._store = store
        self._random = np.random.default_rng(setup.seed)
        self._clusters = LinkClusters()
        self._bandit = SleepingBandit()
        self._pool = LeafPool()  # a leaf for each cluster
        self._leaves = 0
        self._rows = Table(np.dtype([("cluster", "i4"), ("known", "?")]))

    def observe(self, experience: Experience) -> None:
        """Reward the arm of a link; seeds have no arm."""
        row = experience.row
        if row < len(self._rows) and self._rows["known"][row]:
            self._bandit.learn(int(self._rows["cluster"][row]), experience.reward)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Cluster the outlinks by their paths; those without a path are one cluster."""
        paths = [page.paths.get(self._store.url(row), "") for row in outlinks.tolist()]
        self._place(outlinks, paths)
        self.readmit(outlinks)

    def readmit(self, rows: Rows) -> None:
        """Add links to their arms; those that no page has shown are links without a path."""
        self._place(rows[rows >= len(self._rows)])
        while self._leaves < len(self._clusters):
            self._leaves = self._pool.add_leaf() + 1
        clusters = self._rows["cluster"][rows]
        for cluster in np.unique(clusters).tolist():
            self._pool.extend(cluster, rows[clusters == cluster])

    def _place(self, rows: Rows, paths: Sequence[str] = ()) -> None:
        self._rows.grow(int(rows.max(initial=-1)) + 1)
        self._rows["cluster"][rows] = [
            self._clusters.add(path) for path in paths or [""] * len(rows)
        ]
        self._rows["known"][rows] = True

    def select(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Draw a link of every arm that is awake and return that of the best arm."""
        drawn = representatives(self._pool, self._store, self._random, busy_hosts)
        if not len(drawn.rows):
            return None
        arm, row = drawn.take(self._bandit.choose(drawn.leaves), self._pool)
        return Decision(row, arm, None)

    def figures(self) -> dict[str, float | str]:
        """Report the number of arms."""
        return {"arms": len(self._clusters)}
