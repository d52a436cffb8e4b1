"""SeedFinder: search queries add seeds to a crawl by ACHE (Vieira et al., 2016).

The settings are ACHE's documented defaults: at most 100 queries, and two pages of results for each.
The second page is read only if half of the new results on the first are relevant. Departures:

- The first query is the topic's name, not a user's query. While queries give no new terms, the
  keywords are tried one by one.
- ACHE's tool runs and downloads before the crawl. Here queries and results are fetched in the
  crawl, before any link, and a result counts as a page of the crawl.
- The crawl follows links of all results, irrelevant ones too, as for any page under soft focus.
- A query has as many terms as in the paper. ACHE's code adds one more, treats every precise query
  as one without new results, and reads the next page at a precision of a quarter.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote_plus, urlsplit

import numpy as np

from rivals.ache import AchePolicy
from rivals.inputs import SearchInputs
from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText
from tres_scrapy.config.typed import named
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import NO_PARENT, Eligibility, SampleStore
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS
from tres_scrapy.url.message import TresError

MAX_QUERIES = 100
MAX_PAGES = 2  # result pages for one query
MIN_PRECISION = 0.5
MIN_NEW = 0.5
UNKNOWN_SCORE = 0.01  # of a query term that no page contained so far
_NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


@dataclass
class Results:
    """Counts of a query's results and of the new ones, and the fetched pages with labels."""

    found: int = 0
    new: int = 0
    pages: list[tuple[str, bool]] = field(default_factory=list)  # text, relevant

    @property
    def precision(self) -> float:
        """The share of relevant pages among the fetched ones, 0 without pages."""
        return sum(relevant for _, relevant in self.pages) / max(len(self.pages), 1)

    @property
    def share_new(self) -> float:
        """The share of results that were not fetched before, 0 without results."""
        return self.new / max(self.found, 1)

    def extend(self, more: Results) -> None:
        """Add the results of another page."""
        self.found += more.found
        self.new += more.new
        self.pages += more.pages


class RelevanceFeedback:
    """Builds queries from the pages that earlier queries found.

    Terms score positive on relevant and negative on irrelevant pages.

    A query has the terms with the best scores, plus the best term that no query had before.
    """

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}
        self._used: set[str] = set()

    def next_query(self, query: Sequence[str], results: Results) -> list[str]:
        """Learn from a query; return the next one, or an empty list if no unused term is left."""
        self._used.update(query)
        if results.precision > MIN_PRECISION:
            for text, relevant in results.pages:
                self._score_page(text, 1 if relevant else -1)
        for term in query:
            self.scores[term] = self.scores.get(term, UNKNOWN_SCORE) * results.precision
        best = heapq.nlargest(_size(query, results) - 1, self.scores, key=self.scores.__getitem__)
        self._used.update(best)
        unused = (term for term in self.scores if term not in self._used)
        added = max(unused, key=self.scores.__getitem__, default=None)
        return [] if added is None else [*best, added]

    def _score_page(self, text: str, sign: int) -> None:
        terms = [term for term in tokenise(text) if term not in STOP_WORDS]
        for term, count in Counter(terms).items():
            # each occurrence weighs count / len(terms)
            self.scores[term] = self.scores.get(term, 0.0) + sign * count**2 / len(terms)


def _size(query: Sequence[str], results: Results) -> int:
    """Return the size of the next query: longer for precision, shorter for new pages."""
    if results.precision < MIN_PRECISION:
        return len(query) + 1
    return max(1, len(query) - (results.share_new < MIN_NEW))


@dataclass
class _Search:
    """A query: its terms, the row of its latest page of results, and its results."""

    terms: list[str]
    row: int | None = None
    pages: int = 0
    page: Results = field(default_factory=Results)
    all_pages: Results = field(default_factory=Results)
    next_page: Rows = field(default_factory=_NO_ROWS.copy)


class SeedFinderPolicy(AchePolicy):
    """Fetches the results of its queries, and ACHE's links while no result can be fetched.

    The first query is sent after the first seed. The next is in the store as soon as all results
    are read, so that the frontier does not become empty before. Links to the search engine are not
    followed.
    """

    reads_text = True

    def __init__(self, store: SampleStore, setup: SearchInputs) -> None:
        if setup.search is None or "{query}" not in setup.search:
            raise TresError(
                f"search_url: {setup.search!r} must be a URL with {{query}} in place of the query: "
                f"set {named('TRES_SEARCH_URL')} to one"
            )
        super().__init__(store, setup)
        self.queries = 0
        self._endpoint = setup.search
        self._engine = urlsplit(setup.search).hostname
        self._keywords = iter(setup.keywords)
        self._feedback = RelevanceFeedback()
        self._waiting: list[int] = []  # a page of results, or the results
        self._leased: set[int] = set()  # those being fetched
        # None if there is no further query
        self._search: _Search | None = _Search(self._next_keyword())

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Return the next page of results or result, else the best link.

        While one of them is being fetched, links wait: otherwise a crawl with many requests at a
        time would fetch mostly links, because each query needs the results of the one before.
        """
        row = self._first_ready(available)
        if row is None:
            self._proceed()  # maybe no result of the last query could be fetched
            row = self._first_ready(available)
        if row is None:
            return None if self._leased else super().select(available)
        self._leased.add(row)
        return Decision(row, None, None, is_query=self._is_query(row))

    def observe(self, experience: Experience) -> None:
        """Learn from a page as ACHE does, but not from a page of results."""
        if not self._is_query(experience.row):
            super().observe(experience)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Keep the results of a query, or add the outlinks of a page to the queue."""
        hosts = [self.store.hosts.names[self.store["host"][row]] for row in outlinks.tolist()]
        of_engine = np.array([host == self._engine for host in hosts], dtype=np.bool_)
        outlinks, own = outlinks[~of_engine], outlinks[of_engine]
        search = self._search
        if search is not None and experience.row == search.row:
            self._take_results(search, outlinks, own, page)
        else:
            self.store.drop(own)
            super().expand(experience, outlinks, page)
            if search is not None and experience.row in self._leased and page.text:
                search.page.pages.append((page.text, experience.reward > 0))
        self._leased.discard(experience.row)
        self._proceed()

    def readmit(self, rows: Rows) -> None:
        """Add links to the queue and results of queries to the results that wait."""
        is_link = np.array([row in self._neighbourhoods for row in rows.tolist()], dtype=np.bool_)
        super().readmit(rows[is_link])
        self._waiting.extend(rows[~is_link].tolist())

    def figures(self) -> dict[str, float | str]:
        """Return ACHE's figures and the number of queries."""
        return super().figures() | {"queries": self.queries}

    def _is_query(self, row: int) -> bool:
        return self._search is not None and row == self._search.row

    def _first_ready(self, available: Availability) -> int | None:
        for row in tuple(self._waiting):
            eligibility = self.store.eligibility(np.array([row]), available)[0]
            if eligibility == Eligibility.BUSY:
                continue
            self._waiting.remove(row)
            if eligibility == Eligibility.READY:
                return row
            self.store.drop(np.array([row]))
        return None

    def _take_results(self, search: _Search, results: Rows, own: Rows, page: PageText) -> None:
        """Keep the results and the link to the next page of results, if there is one."""
        self._waiting.extend(results.tolist())
        search.page.new = len(results)
        search.page.found = sum(urlsplit(url).hostname != self._engine for url in page.contexts)
        anchors = [tokenise(self.store.anchors[row]) for row in own.tolist()]
        following = np.array(["next" in anchor for anchor in anchors], dtype=np.bool_)
        search.next_page = own[following][:1]
        self.store.drop(np.setdiff1d(own, search.next_page))

    def _proceed(self) -> None:
        """When all results are read, request the next page of results or the next query."""
        search = self._search
        if search is None or self._waiting or self._leased:
            return
        if not search.pages:
            self._ask(search)
            return
        search.all_pages.extend(search.page)
        precise = search.page.precision >= MIN_PRECISION
        if precise and search.pages < MAX_PAGES and len(search.next_page):
            self._ask_page(search, search.next_page)
            return
        self.store.drop(search.next_page)
        self._search = None
        terms = self._feedback.next_query(search.terms, search.all_pages) or self._next_keyword()
        if terms and self.queries < MAX_QUERIES:
            self._search = _Search(terms)
            self._ask(self._search)

    def _next_keyword(self) -> list[str]:
        return tokenise(next(self._keywords, ""))

    def _ask(self, search: _Search) -> None:
        """Add a query to the store."""
        self.queries += 1
        url = self._endpoint.replace("{query}", quote_plus(" ".join(search.terms)))
        action = np.zeros((1, 3), dtype=np.float32)
        self._ask_page(search, self.store.add(NO_PARENT, Outlinks([url], [""], action)))

    def _ask_page(self, search: _Search, rows: Rows) -> None:
        """Fetch a page of results next; `rows` is empty if its URL cannot be fetched."""
        self._waiting = rows.tolist()
        search.row = int(rows[0]) if len(rows) else None
        search.pages += 1
        search.page, search.next_page = Results(), _NO_ROWS
