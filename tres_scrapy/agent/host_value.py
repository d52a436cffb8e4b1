"""What hosts may still bring: what the answer to a link teaches about the other pages of its host.

A host is good, with GOOD of its pages relevant, or it is not. Before its first fetch it is good
with the probability that a host of this crawl is (empirical Bayes); each fetch moves the odds. If
the best link of the known hosts promises less than a page of a good host, the difference, times the
pages that a good host has left, is what there is to gain by finding one. An answer is worth its
host's share of that gain (a knowledge gradient: Frazier, Powell and Dayanik, 2008). While the known
hosts are good, nothing is to be gained, and the crawl stays with them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Table
from tres_scrapy.links.model import sigmoid

GOOD: Final = 0.8  # share of the pages of a good host that are relevant
STOCK: Final = 20  # pages that a good host is trusted to have
COST: Final = 3  # fetches after which a host is known
HIT: Final = 50.0  # the odds that a host is good, after a relevant page: times so many
MISS: Final = 0.22  # after another page
FRONT_MISS: Final = 0.5  # after a front page: many good hosts have one that is not relevant
UNDECIDED: Final = 6  # fetches: then the record of a host and its links say what it is
HUB: Final = 0.5  # of a host that a page opens, in hosts that are fetched now
OTHERS: Final = 9  # hosts that are not good, believed before the first fetch
REACH: Final = 100  # hosts to try that are enough: more are not looked for
FADE: Final = 0.95  # of what a fetch counts, at each further fetch of its host
LEAST: Final = 0.05  # P(relevant) that some link always has
_HOST: Final = np.dtype(
    [("fetches", "f4"), ("relevant", "f4"), ("evidence", "f4"), ("opened", "f4")]
)

Hosts = NDArray[np.int32]
Values = NDArray[np.float32]


class HostValues:
    """Counts the fetches of hosts, with fading weights, and what came of them.

    Hosts go by number; numbers rise in the order in which links to the hosts are found.
    """

    def __init__(self) -> None:
        self._hosts = Table(_HOST, capacity=64)
        self._fetched = self._paying = 0  # hosts, of all
        self._known = 0  # hosts that were fetched or that links lead to

    def note_fetch(self, host: int, reward: float, *, is_front: bool = False) -> None:
        """Count a fetch of a host; `is_front` marks its front page."""
        self._hosts.grow(host + 1)
        self._known = max(self._known, host + 1)
        record = self._hosts
        self._fetched += record["fetches"][host] == 0
        self._paying -= self._pays(host)
        odds = HIT if reward > 0 else FRONT_MISS if is_front else MISS
        for name, value in (("fetches", 1), ("relevant", reward), ("evidence", np.log(odds))):
            record[name][host] = FADE * record[name][host] + value
        record["opened"][host] *= FADE
        self._paying += self._pays(host)

    def note_outlinks(self, host: int, targets: Hosts) -> None:
        """Count the hosts that the page just fetched opens: no link has led to them before.

        `targets` [n] are the hosts of its outlinks.
        """
        self._hosts.grow(host + 1)
        self._hosts["opened"][host] += len(np.unique(targets[targets >= self._known]))
        self._known = max(self._known, int(targets.max(initial=-1)) + 1)

    def logits(self, hosts: Hosts) -> Values:
        """Return the logit of the relevant share of the last fetches [n], 0 without a fetch."""
        fetches, relevant = self._of(hosts, "fetches", "relevant")
        logits: Values = np.log((relevant + 0.5) / (fetches - relevant + 0.5))
        return logits

    def gains(self, hosts: Hosts, p: Values, room: NDArray[np.int32]) -> Values:
        """Return what the answers to links [n] teach, in relevant pages.

        `p` [n] is P(relevant) of the links, `room` [n] how many pages their hosts may still give.
        """
        fetches, evidence, opened = self._of(hosts, "fetches", "evidence", "opened")
        best = float(p[fetches > COST - 1].max(initial=LEAST))
        if best >= GOOD:
            return np.zeros(len(hosts), dtype=np.float32)
        at_stake = (GOOD - best) * np.minimum(room, STOCK) / COST
        share = (self._paying + 1) / (self._fetched + 1 + OTHERS)
        good = sigmoid(np.log(share / (1 - share)) + evidence)
        lack = max(0.0, 1 - (self._known - self._fetched) / REACH)  # of hosts to try
        opens = HUB * lack * share * opened / (fetches + 1)
        arms = np.where(fetches < UNDECIDED, good, 0) + opens
        values: Values = (at_stake * arms).astype(np.float32)
        return values

    def _pays(self, host: int) -> bool:
        record = self._hosts
        return bool(record["relevant"][host] > (record["fetches"][host] + 0.5) / 2)

    def _of(self, hosts: Hosts, *names: str) -> list[Values]:
        self._hosts.grow(int(hosts.max(initial=-1)) + 1)
        return [self._hosts[name].take(hosts) for name in names]
