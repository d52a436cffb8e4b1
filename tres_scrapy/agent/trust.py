"""How much of a crawl a body of domains may take: its trust, which links pass on from the seeds.

A crawler is rewarded by its own judge, so who writes pages that the judge likes, endlessly, would
own the crawl. But two things he cannot write: the links of others, and something new on each page.
TrustRank (Gyöngyi, Garcia-Molina and Pedersen, 2004) passes the trust of the seeds along links
between domains. A body is a domain with all that was found through it. A body is stale as far
as its pages have hardly a new phrase or word (`page/copies.py`).

As long as a body has less than FREE of the pages of a crawl, or its share of them is no more than
CREDIT times its share of the trust, nothing happens. What a stale body takes beyond that costs its
links up to PRICE times what they promise, so that others come first, if there are others. Stale
domains of few pages count together, for a farm may have any number of them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import Said
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

FREE: Final = 0.05  # share of the pages
CREDIT: Final = 40  # times its trust
CREDIT_TOGETHER: Final = 3  # the same for the domains of few pages,
FEW: Final = 20  # as many at most
PRICE: Final = 4.0  # Q counts later pages too, so 1 is not enough
DAMPING: Final = 0.85  # share of its trust that a domain passes on
EXPECTED: Final = 8  # new words: fewer may be missing by chance
ROUNDS: Final = 20  # of passing it on
LEAST: Final = 100  # pages: shares of fewer say nothing
GROWTH: Final = 1.03  # of the pages until shares are computed again, and
WAIT: Final = 10  # pages more

Shares = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Trust:
    """Rates the bodies of domains of a store, again whenever the crawl has grown."""

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self._due = 0  # pages of the crawl
        self._excess = np.zeros(0)  # by domain

    def excess(self, rows: Rows) -> NDArray[np.float32]:
        """Return which share of the pages of the bodies of samples [n] is beyond their trust.

        A domain found since the last rating counts as that of the page that led there. Without
        counts of links between domains (`domain_inlinks` of a preset) it is 0.
        """
        store = self._store
        if not store.ledger.inlinks:
            return np.zeros(len(rows), dtype=np.float32)
        said = store.ledger.said
        if (pages := said.pages.sum()) >= self._due:
            links = store.ledger.links.values()
            ends = np.stack([links >> 32, links & 0xFFFFFFFF])
            self._excess = excess_of(said, *self._finders(), ends)
            self._due = int(pages * GROWTH) + WAIT
        excess = np.zeros(len(rows), dtype=np.float32)
        places, sources = np.arange(len(rows)), rows
        while len(places):
            domains = store["domain"].take(sources)
            known = domains < len(self._excess)
            excess[places[known]] = self._excess[domains[known]]
            parents = store["parent"].take(sources)
            goes_on = ~known & (parents != NO_PARENT)  # a new seed has no body
            places, sources = places[goes_on], parents[goes_on].astype(np.int64)
        return excess

    def _finders(self) -> tuple[Numbers, Numbers]:
        """Return the domains of samples in the order found [n], and what found each [n].

        The finder of a seed is NO_PARENT.
        """
        domains = self._store["domain"].take(np.arange(len(self._store)))
        _, firsts = np.unique(domains, return_index=True)
        firsts.sort()
        parents = self._store["parent"].take(firsts)
        finders = np.where(parents == NO_PARENT, NO_PARENT, domains[np.maximum(parents, 0)])
        return domains[firsts].astype(np.int64), finders.astype(np.int64)


def excess_of(said: Said, found: Numbers, finders: Numbers, links: Numbers) -> Shares:
    """Return the share of the pages of bodies of domains [N] that is beyond what they may take.

    `found` [n] are domains in the order found, `finders` [n] the domain by which each was,
    NO_PARENT for seeds; `links` [2, m] lead from one domain to another. The share of a domain is
    the highest of its own body and of those that contain it.
    """
    is_seed = np.zeros(len(said.pages), dtype=np.bool_)
    is_seed[found[finders == NO_PARENT]] = True
    ways = _levels(found, finders)
    trust = trust_of(is_seed, links)
    total = max(int(said.pages.sum()), LEAST)
    bodies = Said(*(_of_bodies(each, ways) for each in said))
    staleness = np.where(is_seed, 0, staleness_of(bodies))
    # What a door passed on, it has: more came in by links to honest sites found through it.
    trusted = np.minimum(_of_bodies(trust, ways), trust / (1 - DAMPING))
    excess = _beyond(bodies.pages / total, CREDIT * trusted) * staleness
    is_small = _inherited((said.pages <= FEW) & (staleness > 0), ways)
    share = np.array([said.pages[is_small].sum() / total])
    together = _beyond(share, CREDIT_TOGETHER * trust[is_small].sum())
    return _inherited(np.maximum(excess, is_small * together), ways)


def staleness_of(bodies: Said) -> Shares:
    """Return how little new bodies [N] say, 0 to 1.

    It rises with the share of their pages that have hardly a new phrase, from half of them on, or
    as their new words fall below a third of those expected.
    """
    phrases = 2 * bodies.stale / np.maximum(1, bodies.pages) - 1
    words = 1 - 3 * bodies.new / np.maximum(EXPECTED, bodies.expected)
    words[bodies.expected < EXPECTED] = 0
    staleness: Shares = np.maximum(0, np.maximum(phrases, words))
    return staleness


def trust_of(is_seed: NDArray[np.bool_], links: Numbers) -> Shares:
    """Return the trust of domains [N], 1 in all, given `is_seed` [N] and links between them [2, m].

    A domain passes DAMPING of its trust on, in equal parts, and the rest to the seeds; without
    links it gives all to them.
    """
    sources, targets = links
    count = len(is_seed)
    degrees = np.bincount(sources, minlength=count)
    given = is_seed / max(1, is_seed.sum())
    trust: Shares = given
    for _ in range(ROUNDS):
        flow = np.bincount(targets, trust[sources] / degrees[sources], count)
        trust = DAMPING * flow + given * (trust.sum() - DAMPING * flow.sum())
    return trust


def _levels(found: Numbers, finders: Numbers) -> list[tuple[Numbers, Numbers]]:
    """Return domains [n] and what found them [n], for each number of steps from the seeds.

    Domains that found no other come last, however many steps away.
    """
    steps, levels = {NO_PARENT: -1}, dict[int, list[tuple[int, int]]]()
    leads = np.isin(found, finders)
    for domain, finder in zip(found[leads].tolist(), finders[leads].tolist(), strict=True):
        step = steps[domain] = steps[finder] + 1
        levels.setdefault(step, []).append((domain, finder))
    ways = (np.array(levels[step]).T for step in range(1, len(levels)))
    last = ~leads & (finders != NO_PARENT)
    return [*((domains, by) for domains, by in ways), (found[last], finders[last])]


def _of_bodies(numbers: NDArray, levels: list[tuple[Numbers, Numbers]]) -> NDArray:  # type: ignore[type-arg]
    """Return the sums over the bodies of domains [N]: each with all that was found through it."""
    sums = numbers.copy()
    for domains, finders in reversed(levels):
        np.add.at(sums, finders, sums[domains])
    return sums


def _inherited(values: NDArray, levels: list[tuple[Numbers, Numbers]]) -> NDArray:  # type: ignore[type-arg]
    """Return the highest value [N] of each domain and of those on the way to it."""
    highest = values.copy()
    for domains, finders in levels:
        highest[domains] = np.maximum(highest[domains], highest[finders])
    return highest


def _beyond(shares: Shares, trusted: Shares) -> Shares:
    """Return which part of shares of the pages [n] is beyond FREE and beyond the trust [n]."""
    may = np.maximum(FREE, trusted)
    beyond: Shares = np.maximum(0, 1 - may / np.maximum(shares, may))
    return beyond
