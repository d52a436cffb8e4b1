"""SB-CLASSIFIER: a sleeping bandit over clusters of links (Gauquier, Manolescu, Senellart, 2026).

Links are clustered by the tags that lead to them on their page. The clusters are the arms of a
sleeping bandit: an arm sleeps while it has no link that can be fetched. A random link of the chosen
arm is fetched. Parameters are those of the paper and of the authors' code: pairs of tags in 2^12
dimensions, cosine 0.75, alpha = 2 sqrt(2). Departures:

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

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.sampling import LeafPool, representatives
from tres_scrapy.frontier.store import SampleStore


class SbClassifierPolicy:
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
        self._rows.extend(max(0, int(rows.max(initial=-1)) + 1 - len(self._rows)))
        self._rows["cluster"][rows] = [
            self._clusters.add(path) for path in paths or [""] * len(rows)
        ]
        self._rows["known"][rows] = True

    def learn(self) -> float | None:
        """Learn nothing; the bandit learns at once."""
        return None

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


ALPHA: Final = 2 * 2**0.5


class SleepingBandit:
    """AUER, awake upper estimated reward (Kleinberg et al., 2010): arms sleep at times.

    It chooses the arm of highest score among those that are awake; new arms have the highest. The
    score is the mean reward plus alpha sqrt(ln t / n), where n of t choices were of this arm.
    Kleinberg et al. take alpha = sqrt(8) for rewards from 0 to 1.

    Arms are numbered from 0. An arm can be chosen again before its reward is known: the choice
    counts at once, the reward when it comes.
    """

    def __init__(self, alpha: float = ALPHA) -> None:
        self.choices = 0
        self._alpha = alpha
        self._arms = Table(np.dtype([("chosen", "i8"), ("rewarded", "i8"), ("reward", "f8")]))

    def scores(self, arms: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores [n] of arms, infinite for arms that were never chosen."""
        self._arms.extend(max(0, int(arms.max(initial=-1)) + 1 - len(self._arms)))
        chosen, rewarded = self._arms["chosen"].take(arms), self._arms["rewarded"].take(arms)
        width = np.sqrt(np.log(max(1, self.choices)) / np.maximum(chosen, 1))
        means = self._arms["reward"].take(arms) / np.maximum(rewarded, 1)
        return np.where(chosen > 0, means + self._alpha * width, np.inf)

    def choose(self, awake: NDArray[np.int64]) -> int:
        """Return the position in `awake` of the arm to take; among equal arms, the oldest."""
        position = int(np.lexsort((awake, -self.scores(awake)))[0])
        self._arms["chosen"][awake[position]] += 1
        self.choices += 1
        return position

    def learn(self, arm: int, reward: float) -> None:
        """Add the reward of a choice to its arm."""
        self._arms["rewarded"][arm] += 1
        self._arms["reward"][arm] += reward


DIMENSIONS: Final = 2**12
SIMILARITY: Final = 0.75  # least cosine to a cluster's centroid
START, END = "^", "$"  # no tags


class PathVector(NamedTuple):
    """The dimensions [n] of a path that are not 0, in order, and their values."""

    dimensions: NDArray[np.int64]
    values: NDArray[np.float64]


class LinkClusters:
    """Clusters of links by the tags that lead to them, numbered in the order in which they begin.

    A path such as `html body div.#main ul.menu li a` is a bag of pairs of neighbouring tags, with
    marks at both ends, each pair hashed to one of 2^12 dimensions and weighed by its share of the
    path. A link joins the cluster with the nearest centroid if their cosine is 0.75 at least;
    otherwise it begins a new one. A cluster takes 16 KB.
    """

    def __init__(self) -> None:
        self._count = 0
        # A centroid is the sum of a cluster's vectors: its length does not change a cosine.
        self._sums = np.zeros((DIMENSIONS, 64), dtype=np.float32)  # [dimension, cluster]
        self._squares = np.zeros(64)  # of the lengths of these sums

    def __len__(self) -> int:
        return self._count

    def add(self, path: str) -> int:
        """Add a link by its path; return its cluster."""
        vector = vector_of(path)
        cosines = self.cosines(vector)
        cluster = int(cosines.argmax()) if len(cosines) else 0
        if not len(cosines) or cosines[cluster] < SIMILARITY:
            cluster = self._begin()
        sums = self._sums[vector.dimensions, cluster]
        self._squares[cluster] += vector.values @ (2 * sums + vector.values)
        self._sums[vector.dimensions, cluster] = sums + vector.values
        return cluster

    def cosines(self, vector: PathVector) -> NDArray[np.float64]:
        """Return the cosine [n] of a path to each centroid."""
        dots = vector.values @ self._sums[vector.dimensions, : self._count]
        lengths = np.sqrt(self._squares[: self._count] * (vector.values @ vector.values))
        cosines: NDArray[np.float64] = dots / lengths
        return cosines

    def _begin(self) -> int:
        if self._count == len(self._squares):
            self._sums = np.concatenate([self._sums, np.zeros_like(self._sums)], axis=1)
            self._squares = np.concatenate([self._squares, np.zeros_like(self._squares)])
        self._count += 1
        return self._count - 1


@lru_cache(maxsize=10_000)  # the links of a menu have one path
def vector_of(path: str) -> PathVector:
    """Return the vector of a path of tags separated by spaces, which may be empty."""
    pairs = list(pairwise([START, *path.split(), END]))
    numbers = (crc32(f"{a} {b}".encode("utf-8", "replace")) % DIMENSIONS for a, b in pairs)
    counts = sorted(Counter(numbers).items())
    dimensions, values = zip(*counts, strict=True)
    return PathVector(np.array(dimensions), np.array(values) / len(pairs))
