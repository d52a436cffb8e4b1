"""How much of a crawl a body of domains may take: its trust, which links pass on from the seeds.

A crawler is rewarded by its own judge, so who writes pages that the judge likes, endlessly, would
own the crawl. But he cannot write the links of others. TrustRank (Gyöngyi, Garcia-Molina and
Pedersen, 2004) passes the trust of the seeds along links between domains. A body is a domain with
all that was found through it: the trust of a farm of endless domains is what came in by its doors.

As long as a body has less than FREE of the pages of a crawl, or its share of them is no more than
CREDIT times its share of the trust, nothing happens. What is beyond costs its links up to PRICE of
what they are worth, so that others come first, if there are others.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

FREE: Final = 0.05  # share of the pages
SMALL: Final = 20
POOL_CREDIT: Final = 3
CREDIT: Final = 40  # times its trust
PRICE: Final = 4.0  # share of a link's worth, at most
DAMPING: Final = 0.85  # share of its trust that a domain passes on
ROUNDS: Final = 20  # of passing it on
LEAST: Final = 100  # pages: shares of fewer say nothing
GROWTH: Final = 1.02  # of the pages until shares are computed again, and
WAIT: Final = 10  # pages more

Shares = NDArray[np.float64]


class Trust:
    """Rates the bodies of domains of a store, again whenever the crawl has grown."""

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self._due = 0  # pages of the crawl
        self._excess = np.zeros(0)  # by domain

    def excess(self, rows: Rows) -> NDArray[np.float32]:
        """Return which share of the pages of the bodies of samples [n] is beyond their trust.

        A domain found since the last rating counts as that of the page that links there. Without
        counts of links between domains (`domain_inlinks` of a preset) it is 0.
        """
        store = self._store
        if not store.ledger.inlinks:
            return np.zeros(len(rows), dtype=np.float32)
        if (pages := store.ledger.all_pages()).sum() >= self._due:
            self._excess = excess_of(
                pages, store.ledger.stale_pages(), *self._finders(), store.ledger.links()
            )
            self._due = int(pages.sum() * GROWTH) + WAIT
        sources = rows.copy()
        while len(new := np.flatnonzero(store["domain"].take(sources) >= len(self._excess))):
            sources[new] = store["parent"].take(sources[new])
        return self._excess.take(store["domain"].take(sources)).astype(np.float32)

    def _finders(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the domains of samples in the order found [n], and what found each [n].

        The finder of a seed is NO_PARENT.
        """
        domains = self._store["domain"].take(np.arange(len(self._store)))
        _, firsts = np.unique(domains, return_index=True)
        firsts.sort()
        parents = self._store["parent"].take(firsts)
        finders = np.where(parents == NO_PARENT, NO_PARENT, domains[np.maximum(parents, 0)])
        return domains[firsts].astype(np.int64), finders.astype(np.int64)


def excess_of(
    pages: NDArray[np.int32],
    stale: NDArray[np.int32],
    found: NDArray[np.int64],
    finders: NDArray[np.int64],
    links: NDArray[np.int64],
) -> Shares:
    """Return the share of the pages of bodies of domains [N] that is beyond what they may take.

    `pages` [N] are the pages fetched of each; `found` [n] are domains in the order found, `finders`
    [n] the domain by which each was, NO_PARENT for seeds; `links` [2, m] lead from one domain to
    another. The share of a domain is the highest of its own body and of those that contain it.
    """
    is_seed = np.zeros(len(pages), dtype=np.bool_)
    is_seed[found[finders == NO_PARENT]] = True
    own = trust_of(is_seed, links)
    taken, old, trusted = pages.tolist(), stale.tolist(), own.tolist()
    ways = [way for way in zip(found.tolist(), finders.tolist(), strict=True) if way[1] >= 0]
    for domain, finder in reversed(ways):
        taken[finder] += taken[domain]
        old[finder] += old[domain]
        trusted[finder] += trusted[domain]
    may = np.maximum(FREE, CREDIT * np.array(trusted)) * max(int(pages.sum()), LEAST)
    taken, old, trusted = np.array(taken), np.array(old), np.array(trusted)
    total = max(int(pages.sum()), LEAST)
    stale_share = old / np.maximum(1, taken)
    beyond = 1 - np.maximum(FREE, CREDIT * trusted) * total / (taken + 1)
    excess = np.maximum(0, beyond) * np.maximum(0, 2 * stale_share - 1)
    excess = np.where(is_seed, 0, excess).tolist()
    of_many = ((pages <= SMALL) & (stale_share > 0.5) & ~is_seed).tolist()
    for domain, finder in ways:
        of_many[domain] |= of_many[finder]
    many = np.array(of_many)
    may = max(FREE, POOL_CREDIT * own[many].sum()) * total
    together = max(0.0, 1 - may / (int(pages[many].sum()) + 1))
    for domain in np.flatnonzero(many).tolist():
        excess[domain] = max(excess[domain], together)
    for domain, finder in ways:
        excess[domain] = max(excess[domain], excess[finder])
    return np.array(excess)


def trust_of(is_seed: NDArray[np.bool_], links: NDArray[np.int64]) -> Shares:
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
