"""A policy that draws among all samples, for tests in which the choice does not matter."""

import numpy as np

from tres_scrapy.agent.policy import NO_TEXT, Decision, Policy
from tres_scrapy.frontier.ledger import ANY_HOST
from tres_scrapy.frontier.sampling import LeafPool, representatives


class UniformPolicy(Policy):
    def __init__(self, store):
        self._store, self._pool, self._random = store, LeafPool(), np.random.default_rng(0)
        self._leaf = self._pool.add_leaf()

    def expand(self, experience, outlinks, page=NO_TEXT):
        self._pool.extend(self._leaf, outlinks)

    def readmit(self, rows):
        self._pool.extend(self._leaf, rows)

    def select(self, available=ANY_HOST):
        drawn = representatives(self._pool, self._store, self._random, available)
        if not len(drawn.rows):
            return None
        leaf, row = drawn.take(0, self._pool)
        return Decision(row, leaf, None)
