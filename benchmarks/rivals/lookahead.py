"""Lookahead: it knows the whole web and goes the fewest fetches to the next relevant page.

A ceiling for crawls of recorded and corpus webs. The oracle, which sees one link ahead, never walks
through a page that is not relevant; this policy does. Fetching the nearest relevant page first is
not always best in the long run, which no policy can compute for a large web.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rivals.baseline import QueuePolicy
from rivals.graph import NO_PAGE, Graph, Numbers
from rivals.inputs import GraphInputs
from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import Eligibility, SampleStore, State
from tres_scrapy.url.canonical import domain_of
from tres_scrapy.url.message import TresError

_NO_ROW = np.iinfo(np.int64).max


class LookaheadPolicy(QueuePolicy):
    """Fetches the link from which the fewest fetches lead to a relevant page not yet fetched.

    Among equally near links, it takes the one whose page links to the most relevant pages, then the
    oldest. Pages of full domains are no targets and no way to one. Links that lead to no relevant
    page come last, in the order in which they were found, and of these dead links.
    """

    def __init__(self, store: SampleStore, setup: GraphInputs) -> None:
        super().__init__(store)
        if setup.graph is None:
            raise TresError("LOOKAHEAD needs the graph of an offline web")
        self._graph = setup.graph
        self._open = np.ones(len(self._graph), dtype=np.bool_)  # neither fetched nor being fetched
        self._rows: defaultdict[int, list[int]] = defaultdict(list)  # by page
        self._oldest = np.full(len(self._graph), _NO_ROW)  # row by page
        self._domains = _Domains(store, self._graph)

    def values(self, rows: Rows, page: PageText) -> NDArray[np.float64]:
        """Return 0 for links to pages and -1 for dead links."""
        return np.where(self._pages(rows) == NO_PAGE, -1.0, 0.0)

    def observe(self, experience: Experience) -> None:
        """Note that a page was fetched: a seed, or the page at the end of a redirect."""
        self._close(experience.row)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the outlinks to the queue and to their pages."""
        super().expand(experience, outlinks, page)
        self._add(outlinks)

    def readmit(self, rows: Rows) -> None:
        """Add links to the queue and to their pages."""
        super().readmit(rows)
        self._add(rows)

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Return the nearest link, else the oldest; the value is 1 / fetches to a relevant page."""
        decision = self._nearest(available) or super().select(available)
        if decision is not None:
            self._close(decision.row)
        return decision

    def _nearest(self, available: Availability) -> Decision | None:
        usable = self._open & ~self._domains.full()
        for fetches, (pages, leads) in enumerate(levels(self._graph, usable), 1):
            known = pages[self._oldest[pages] != _NO_ROW]
            order = np.lexsort((self._oldest[known], -leads[known]))
            for page in known[order].tolist():
                row = self._ready(page, available)
                if row is not None:
                    return Decision(row, None, 1 / fetches)
        return None

    def _ready(self, page: int, available: Availability) -> int | None:
        """Return the oldest link to a page that can be fetched now, or None."""
        rows = np.array(self._rows[page])
        ready = rows[self.store.eligibility(rows, available) == Eligibility.READY]
        pending = (row for row in ready.tolist() if self.store["state"][row] == State.PENDING)
        return next(pending, None)

    def _pages(self, rows: Rows) -> Numbers:
        pages = [self._graph.page(self.store.url(row)) for row in rows.tolist()]
        return np.array(pages, dtype=np.int64)

    def _add(self, rows: Rows) -> None:
        for row, page in zip(rows.tolist(), self._pages(rows).tolist(), strict=True):
            if page != NO_PAGE:
                self._rows[page].append(row)
                self._oldest[page] = min(row, self._oldest[page])

    def _close(self, row: int) -> None:
        page = self._graph.page(self.store.url(row))
        if page != NO_PAGE:
            self._open[page] = False


def levels(graph: Graph, usable: NDArray[np.bool_]) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield the usable pages from which one fetch reaches a relevant page, two fetches, and so on.

    With them yields, by page [n], to how many usable relevant pages it links; further off, the most
    of these that a page on a shortest way links to.
    """
    seen = ~usable
    level = np.flatnonzero(usable & graph.relevant)
    sources, targets = graph.inlinks(level)
    leads = np.bincount(sources, minlength=len(graph))
    while len(level):
        yield level, leads
        seen[level] = True
        new = ~seen[sources]
        sources, targets = sources[new], targets[new]
        farther = leads[sources] == 0  # they link to no relevant page themselves
        np.maximum.at(leads, sources[farther], leads[targets[farther]])
        level = _distinct(sources, len(graph))
        sources, targets = graph.inlinks(level)


def _distinct(pages: Numbers, count: int) -> Numbers:
    """Return each of the pages once, in order; a table is ten times as fast as sorting them."""
    found = np.zeros(count, dtype=np.bool_)
    found[pages] = True
    return np.flatnonzero(found)


class _Domains:
    """The domains of the pages, as far as the ledger knows them."""

    def __init__(self, store: SampleStore, graph: Graph) -> None:
        self._ledger = store.ledger
        self._known = 0
        self._numbers = np.full(len(graph), -1)  # by page
        self._pages: defaultdict[str, list[int]] = defaultdict(list)
        for page, url in enumerate(graph.urls):
            self._pages[domain_of(url)].append(page)

    def full(self) -> NDArray[np.bool_]:
        """Return which pages [n] are on domains that take no more fetches."""
        for number in range(self._known, len(self._ledger)):
            self._numbers[self._pages.pop(self._ledger.names[number], [])] = number
        self._known = len(self._ledger)
        full = self._ledger.full(np.arange(self._known, dtype=np.int32))
        return np.append(full, np.False_).take(self._numbers)  # -1, not known, is the last
