"""What hosts may still bring: what the answer to a link teaches about the other pages of its host.

A host is good, with GOOD of its pages relevant, or it is not. Before its first fetch it is good
with the probability that such a host of this crawl is (empirical Bayes); each fetch moves the odds.
If the best links of the known hosts promise less than the pages of a good host, the difference,
times the pages that a good host has left, is what there is to gain by finding one. An answer is
worth its host's share of that gain (a knowledge gradient: Frazier, Powell and Dayanik, 2008). While
the known hosts are good, nothing is to be gained, and the crawl stays with them.
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
# Of hosts first fetched by a link on an irrelevant or on a relevant page: how many are good, and
# of how many, before the first fetch. Pages link to pages like themselves.
SHARES: Final = ((1.0, 10.0), (3.0, 10.0))
REACH: Final = 100  # hosts to try that are enough: more are not looked for
HORIZON: Final = 10  # best links of known hosts: what the crawl would take otherwise
FADE: Final = 0.95  # of what a fetch counts, at each further fetch of its host
LEAST: Final = 0.05  # P(relevant) that some link always has
_HOST: Final = np.dtype(
    [
        ("fetches", "f4"),
        ("relevant", "f4"),
        ("evidence", "f4"),
        ("opened", "f4"),
        ("count", "i4"),
        ("kind", "i1"),
    ]
)

Hosts = NDArray[np.int32]
Values = NDArray[np.float32]


class HostValues:
    """Counts the fetches of hosts, with fading weights, and what came of them.

    Hosts go by number; numbers rise in the order in which links to the hosts are found.
    """

    def __init__(self) -> None:
        self._hosts = Table(_HOST, capacity=64)
        self._paying = [paying for paying, _ in SHARES]  # hosts, by kind: most of the last pages of
        self._fetched = [fetched for _, fetched in SHARES]  # a paying one are relevant
        self._visited = 0  # hosts
        self._known = 0  # hosts that were fetched or that links lead to

    def note_fetch(
        self, host: int, reward: float, *, is_front: bool = False, on_relevant: bool = False
    ) -> int:
        """Count a fetch of a host; return its number among the fetches of the host.

        `is_front` marks its front page, `on_relevant` a page found by a link on a relevant one.
        """
        self._hosts.grow(host + 1)
        self._known = max(self._known, host + 1)
        record = self._hosts
        if record["fetches"][host] == 0:
            record["kind"][host] = on_relevant
            self._fetched[on_relevant] += 1
            self._visited += 1
        kind, paid = record["kind"][host], self._pays(host)
        said = _log_odds(reward, is_front=is_front)
        for name, value in (("fetches", 1), ("relevant", reward), ("evidence", said)):
            record[name][host] = FADE * record[name][host] + value
        record["opened"][host] *= FADE
        record["count"][host] += 1
        self._paying[kind] += self._pays(host) - paid
        return int(record["count"][host])

    def correct_fetch(
        self, host: int, number: int, before: float, after: float, *, is_front: bool = False
    ) -> None:
        """Change the reward of a fetch of a host; `number` is what `note_fetch` has returned."""
        record, paid = self._hosts, self._pays(host)
        left = FADE ** (record["count"][host] - number)
        new, old = (_log_odds(reward, is_front=is_front) for reward in (after, before))
        record["relevant"][host] += left * (after - before)
        record["evidence"][host] += left * (new - old)
        self._paying[record["kind"][host]] += self._pays(host) - paid

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

    def beliefs(self, hosts: Hosts) -> Values:
        """Return what the fetches of hosts [n] add to the log odds that they are good."""
        return self._of(hosts, "evidence")[0]

    def gains(
        self,
        hosts: Hosts,
        p: Values,
        room: NDArray[np.int32],
        on_relevant: NDArray[np.bool_],
    ) -> Values:
        """Return what the answers to links [n] teach, in relevant pages.

        `p` [n] is P(relevant) of the links, `room` [n] how many pages their hosts may still give,
        `on_relevant` [n] whether they stand on relevant pages.
        """
        fetches, opened = self._of(hosts, "fetches", "opened")
        kind = self._hosts["kind"].take(hosts)
        known = fetches > COST - 1
        otherwise = _yield_of_best(hosts[known], p[known], room[known])
        if otherwise >= GOOD:
            return np.zeros(len(hosts), dtype=np.float32)
        at_stake = (GOOD - otherwise) * np.minimum(room, STOCK) / COST
        shares = np.array(self._paying) / np.array(self._fetched)
        share = shares.take(np.where(fetches > 0, kind, on_relevant))
        good = sigmoid(np.log(share / (1 - share)) + self.beliefs(hosts))
        lack = max(0.0, 1 - (self._known - self._visited) / REACH)  # of hosts to try
        opens = HUB * lack * shares[0] * opened / (fetches + 1)
        arms = np.where(fetches < UNDECIDED, good, 0) + opens
        values: Values = (at_stake * arms).astype(np.float32)
        return values

    def _pays(self, host: int) -> bool:
        record = self._hosts
        return bool(record["relevant"][host] > (record["fetches"][host] + 0.5) / 2)

    def _of(self, hosts: Hosts, *names: str) -> list[Values]:
        self._hosts.grow(int(hosts.max(initial=-1)) + 1)
        return [self._hosts[name].take(hosts) for name in names]


def _log_odds(reward: float, *, is_front: bool) -> float:
    """Return what a fetch adds to the log odds that its host is good."""
    return float(np.log(HIT if reward > 0 else FRONT_MISS if is_front else MISS))


def _yield_of_best(hosts: Hosts, p: Values, room: NDArray[np.int32]) -> float:
    """Return the mean P(relevant) of the best HORIZON links; of a host, no more than its room."""
    if len(p) > HORIZON <= room.min():  # no host has more of the best than room
        return float(np.maximum(np.partition(p, -HORIZON)[-HORIZON:], LEAST).mean(dtype=np.float64))
    best = np.argsort(-p, kind="stable")
    by_host = best[np.argsort(hosts[best], kind="stable")]  # of each host the best first
    _, firsts, counts = np.unique(hosts[by_host], return_index=True, return_counts=True)
    place = np.arange(len(hosts)) - np.repeat(firsts, counts)
    taken = np.sort(p[by_host[place < room[by_host]]])[::-1][:HORIZON]
    return float(np.append(np.maximum(taken, LEAST), np.full(HORIZON - len(taken), LEAST)).mean())
