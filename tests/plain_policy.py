"""A policy without a tree and without Q, for tests of what does not depend on the choices."""

import numpy as np

from tres_scrapy.agent.policy import NO_TEXT, Decision, Policy
from tres_scrapy.frontier.ledger import ANY_HOST
from tres_scrapy.frontier.queue import FrontierQueue


class PlainPolicy(Policy):
    """Fetches samples in the order in which they were found."""

    is_resumable = True

    def __init__(self, store):
        self.queue = FrontierQueue(store)

    def expand(self, experience, outlinks, page=NO_TEXT):
        self.readmit(outlinks)

    def readmit(self, rows):
        self.queue.push(rows, np.zeros(len(rows)))

    def select(self, available=ANY_HOST):
        oldest = self.queue.pop(available)
        return None if oldest is None else Decision(oldest[0], None, None)

    def restore(self, past, rules, state, pending):
        self.readmit(pending)
