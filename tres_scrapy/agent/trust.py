"""How much of a crawl a body of domains may take: its trust, which links pass on from the seeds.

A crawler is rewarded by its own judge, so who writes pages that the judge likes, endlessly, would
own the crawl. But two things he cannot write: the links of others, and something new on each page.
TrustRank (Gyöngyi, Garcia-Molina and Pedersen, 2004) passes the trust of the seeds along links
between domains. A body is a domain with all that is reached only through it (`frontier/body.py`).
It is stale as far as its pages have hardly a new phrase or word (`page/copies.py`). A word may be
new in two ways: no site said it before, or just one other did. Who repeats lacks words of the first
kind; who invents them lacks words of the second, most of all beside what he invents.

As long as a body has less than FREE of the pages of a crawl, or its share of them is no more than
CREDIT times its share of the trust, nothing happens. What a stale body takes beyond that costs its
links up to PRICE times what they promise, so that others come first, if there are others. The
pages of a body that takes more than twice its share lose rewards when links are learned again: so
the links that lead to a farm teach what leads to the next. Stale domains of few pages count
together, for a farm may have any number of them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.body import Bodies
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import Said
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

FREE: Final = 0.05  # share of the pages
CREDIT: Final = 40  # times its trust
CREDIT_TOGETHER: Final = 3  # the same for the domains of few pages, together,
FEW: Final = 50  # that have as many at most, or FREE of all
ENOUGH: Final = 0.1  # that are at least so stale: those that are less count in part
PRICE: Final = 4.0  # Q counts later pages too, so 1 is not enough
DAMPING: Final = 0.85  # share of its trust that a domain passes on
EXPECTED: Final = 8  # new words: fewer may be missing by chance
LAST: Final = 50  # pages, which tell how many are expected
FIFTH: Final = 5  # parts of the words expected: stale bodies have fewer than one,
TWENTIETH: Final = 20  # or one of these
PASSES: Final = 2  # the pages of bodies that are stale in one tell nothing in the next
LARGEST: Final = 20  # bodies that are compared with others only, at most
ROUNDS: Final = 20  # of passing it on
LEAST: Final = 100  # pages: shares of fewer say nothing
GROWTH: Final = 1.03  # of the pages until shares are computed again, and
WAIT: Final = 10  # pages more

Shares = NDArray[np.float64]
Numbers = NDArray[np.integer]


class Trust:
    """Rates the bodies of domains of a store, again whenever the crawl has grown."""

    def __init__(self, store: SampleStore) -> None:
        self._store = store
        self._due = 0  # pages of the crawl
        self._excess = np.zeros(0)  # by domain; empty if none has any

    def excess(self, rows: Rows) -> NDArray[np.float32]:
        """Return which share of the pages of the bodies of samples [n] is beyond their trust.

        A domain found since the last rating counts as that of the page that led there. Without
        counts of links between domains (`domain_inlinks` of a preset) it is 0.
        """
        store = self._store
        if not store.ledger.inlinks:
            return np.zeros(len(rows), dtype=np.float32)
        if (pages := store.ledger.pages) >= self._due:
            bodies, said = Bodies.of_fetched(store)
            self._excess = np.zeros(0)
            if excess_of(said, bodies, said.pages).of_domains(bodies).any():
                # domains that are not fetched hold trust and inherit excess
                said, bodies = store.ledger.said, Bodies.of(store)
                self._excess = excess_of(said, bodies, said.pages).of_domains(bodies)
            self._due = int(pages * GROWTH) + WAIT
        excess = np.zeros(len(rows), dtype=np.float32)
        if not len(self._excess):
            return excess
        places, sources = np.arange(len(rows)), rows
        while len(places):
            domains = store["domain"].take(sources)
            known = domains < len(self._excess)
            excess[places[known]] = self._excess[domains[known]]
            parents = store["parent"].take(sources)
            goes_on = ~known & (parents != NO_PARENT)  # a new seed has no body
            places, sources = places[goes_on], parents[goes_on].astype(np.int64)
        return excess

    def earned(self, rows: Rows) -> NDArray[np.float32]:
        """Return which share of their rewards samples [n] keep, in view of all pages so far.

        They lose some if more than half of the pages of their body are beyond its trust.
        """
        lost = PRICE * np.maximum(0, 2 * self.excess(rows) - 1)
        earned: NDArray[np.float32] = np.maximum(0, 1 - lost)
        return earned


class Excess(NamedTuple):
    """Which share of their pages is beyond what bodies [N] may have."""

    of_bodies: Shares
    stale: Shares  # whether domains [N] of few pages are stale, 0 to 1,
    together: float  # and the share of their pages that is beyond

    def of_domains(self, bodies: Bodies) -> Shares:
        """Return the highest of the bodies that each domain [N] is in, and of stale ones."""
        return bodies.inherited(np.maximum(self.of_bodies, self.stale * self.together))


def excess_of(said: Said, bodies: Bodies, pages: NDArray[np.integer]) -> Excess:
    """Return what is beyond the trust, of `pages` [N] of domains: all pages or the last ones."""
    is_seed = np.isin(np.arange(len(pages)), bodies.seeds)
    trust = trust_of(is_seed, bodies.links, bodies.degrees)
    total = max(int(pages.sum()), LEAST)
    staleness = np.where(is_seed, 0, staleness_of(said, bodies))
    shares = bodies.sums(pages) / total
    is_small = pages <= max(FEW, FREE * total)
    stale = bodies.inherited(np.where(is_small, np.minimum(1, staleness / ENOUGH), 0))
    share = np.array([(pages * stale).sum() / total])
    together = _beyond(share, CREDIT_TOGETHER * (trust * stale).sum())
    of_bodies = _beyond(shares, CREDIT * bodies.sums(trust)) * staleness
    return Excess(of_bodies, stale, float(together[0]))


def staleness_of(said: Said, bodies: Bodies) -> Shares:
    """Return how little new bodies [N] say, 0 to 1.

    It rises with the share of their pages that have hardly a new phrase, from half of them on, or
    as their new words fall below a fifth of those expected: of the words that no domain said before
    them, or of those that just one said, not of the same body; or as the latter fall below a
    twentieth of those expected of who says so much that no domain said before.
    """
    count, repeats = len(said.pages), said.domains[said.spread].astype(np.int64)
    phrases = 2 * bodies.sums(said.stale) / np.maximum(1, bodies.sums(said.pages)) - 1
    again = bodies.common(said.firsts.astype(np.int64), repeats)
    spread = np.bincount(repeats, minlength=count) - np.bincount(again, minlength=count + 1)[:-1]
    first = np.bincount(said.domains, said.new, count)
    spread_on = np.bincount(said.spread, minlength=len(said.new))
    firsts, seconds = (bodies.sums(each) for each in (first, spread))
    kinds = (
        _Words(firsts, said.new, said.words, FIFTH),
        _Words(seconds, spread_on, said.words, FIFTH),
        _Words(seconds, spread_on, said.new, TWENTIETH),
    )
    others = np.ones(count, dtype=np.bool_)
    for _ in range(PASSES):
        lacking = [_lacking(kind, said, bodies, others) for kind in kinds]
        staleness: Shares = np.maximum.reduce([np.zeros(count), phrases, *lacking])
        others = bodies.inherited(staleness) == 0
    return staleness


class _Words(NamedTuple):
    """New words of one kind: how many bodies [N] have, and pages [m] have among so many others.

    A body that has fewer than one of `parts` of those expected is stale.
    """

    had: Shares
    found: Numbers
    among: Numbers
    parts: int


def _lacking(words: _Words, said: Said, bodies: Bodies, others: NDArray[np.bool_]) -> Shares:
    """Return how far the words that bodies [N] have are below one of the parts of those expected.

    Expected are as many as the last pages of `others` [N] had at the time; for the largest bodies,
    those outside of them. If that is too few to tell, it is 0.
    """
    pages, domains = bodies.sums(said.pages), said.domains
    expected = bodies.sums(np.bincount(domains, _expected(words, others[domains]), len(pages)))
    large = np.flatnonzero(pages > FREE * said.pages.sum())
    for body in large[np.argsort(-pages[large])][:LARGEST]:
        inside = bodies.members(body)
        awaited = _expected(words, (others & ~inside)[domains])[inside[domains]].sum()
        expected[body] = max(expected[body], awaited)
    lacking: Shares = 1 - words.parts * words.had / np.maximum(1, expected)
    return np.where(expected < EXPECTED, 0, lacking)


def _expected(words: _Words, counts: NDArray[np.bool_]) -> Shares:
    """Return how many words pages [m] have if they are like the last ones that count [m].

    Those have as many, among the words that they are counted among, but no more than these.
    """
    news, total = (
        np.append(0, np.cumsum(each[counts], dtype=np.int64)) for each in (words.found, words.among)
    )
    last: Numbers = np.cumsum(counts) - counts
    start = np.maximum(0, last - LAST)
    rates = (news[last] - news[start]) / np.maximum(1, total[last] - total[start])
    expected: Shares = np.minimum(1, rates) * words.among
    return expected


def trust_of(is_seed: NDArray[np.bool_], links: Numbers, degrees: Numbers) -> Shares:
    """Return the trust of domains [N], 1 in all, given `is_seed` [N] and links between them [2, m].

    A domain passes DAMPING of its trust on, in equal parts to its `degrees` links, and the rest to
    the seeds; without links it gives all to them. Domains without links may be left out, with
    their trust.
    """
    sources, targets = links
    given = is_seed / max(1, is_seed.sum())
    trust: Shares = given
    for _ in range(ROUNDS):
        flow = np.bincount(targets, trust[sources] / degrees[sources], len(is_seed))
        trust = DAMPING * flow + given * (1 - DAMPING * trust[degrees > 0].sum())
    return trust


def _beyond(shares: Shares, trusted: Shares) -> Shares:
    """Return which part of shares of the pages [n] is beyond FREE and beyond the trust [n]."""
    may = np.maximum(FREE, trusted)
    beyond: Shares = np.maximum(0, 1 - may / np.maximum(shares, may))
    return beyond
