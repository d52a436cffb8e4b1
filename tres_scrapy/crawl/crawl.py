"""The crawl of Algorithm 3: choose a sample, fetch, reward, expand its outlinks (Appendix B)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText, Policy
from tres_scrapy.agent.ranking import Patience
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.failure import REDIRECT_AWAY, Failure
from tres_scrapy.crawl.revision import Revision
from tres_scrapy.crawl.scout import Scout
from tres_scrapy.crawl.visit import FAILURE_REWARD, reward_of
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.frontier.queue import FrontierQueue
from tres_scrapy.frontier.store import NO_PARENT, SampleStore, State

# Kinds of a booking; failures have other kinds. DATA is an answer that is not a page, but that the
# spider has used.
PAGE, QUERY, DATA = "page", "query", "data"
NOT_VISITS = frozenset({QUERY, DATA})  # that do not count for their domain

LEFT_OUT = "links_left_out"
POSTPONED = "postponed/"  # and the kind of a failure: fetches that were set back
LINKS_REFUSED = "links_refused/"  # and the name of a rule
NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


@dataclass(slots=True)
class Lease:
    """A sample that is being fetched: how it was chosen, and its URL at that time.

    `exchange` holds the request and response for the WARC archive until the sample is booked.
    """

    decision: Decision
    experience: Experience
    url: str
    exchange: Any = None


class Booking(NamedTuple):
    """The result of a leased sample: `kind` is PAGE, QUERY, DATA or the kind of a failure.

    `relevant` is the verdict on its page. A trusted seed earns 1 even if it is not relevant.
    """

    experience: Experience
    relevant: bool
    kind: str
    outlinks: Rows
    lease: Lease


class Crawl:
    """Turns frontier samples into experiences, in the order of Algorithm 3.

    A sample that `next` returns is leased until `book_page` or `book_failure` is called for it.
    The crawl ends after `limit` pages, if a limit is set. With `trusted_seeds` the page of a seed
    earns 1, whatever it is, as in the paper. `scout` adds random links to the first pages.
    """

    def __init__(
        self,
        store: SampleStore,
        policy: Policy,
        limit: int | None = None,
        *,
        trusted_seeds: bool = False,
        patience: Patience | None = None,
        scout: Scout | None = None,
    ) -> None:
        self.store = store
        self.policy = policy
        self.limit = limit
        self.trusted_seeds = trusted_seeds
        self.patience = patience or Patience()
        self.scout = scout
        self.revision = Revision(store)
        self.pages = 0
        self.relevant = 0
        self.failures: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()  # other counts, by stat name
        self.loss: float | None = None
        self._first = FrontierQueue(store)  # seeds, and samples that were leased before
        self._last = FrontierQueue(store)  # samples set back that wait for their host
        self._chosen: dict[int, Decision] = {}  # of the latter samples
        self._leased: dict[int, Lease] = {}

    @property
    def harvest_rate(self) -> float:
        """HR: relevant pages among the pages fetched."""
        return self.relevant / self.pages if self.pages else 0.0

    @property
    def leased(self) -> int:
        """The number of leased samples."""
        return len(self._leased)

    def is_leased(self, row: int) -> bool:
        """Return whether a row is leased."""
        return row in self._leased

    def lease_of(self, row: int) -> Lease | None:
        """Return the lease of a row, or None if the row is not leased."""
        return self._leased.get(row)

    @property
    def finished(self) -> bool:
        """Whether the page limit is reached."""
        return self.limit is not None and self.pages >= self.limit

    def add_seeds(self, links: Outlinks, priority: int = 0) -> Rows:
        """Add seeds, x(s_-1, a), to the frontier.

        They are fetched before all other samples, those of the highest priority first.
        """
        rows = self.store.add(NO_PARENT, links)
        self._first.push(rows, np.full(len(rows), float(priority)))
        return rows

    def add_outlinks(self, parent: int, links: Outlinks) -> Rows:
        """Add links that were found later, by the search box of a seed's page."""
        outlinks = self._add(parent, links, is_answer=True)
        x = self.store.features(np.array([parent]))[0]
        reward = self.store.path_to(parent).reward
        self.policy.expand(Experience(parent, x, reward), outlinks, NO_TEXT)
        return outlinks

    def add_unlinked(self, parent: int, links: Outlinks) -> Rows:
        """Add links that do not stand on the page `parent`: a sitemap or feed of its host has them.

        The agent learns nothing from it: they are no candidates after the fetch of that page.
        """
        rows = self._add(parent, links)
        self.policy.readmit(rows)
        return rows

    def owns(self, url: str) -> bool:
        """Return whether this crawl may fetch a URL; of a crawl in shards, each has its own."""
        return True

    def redirect_away(self, row: int, url: str) -> Booking:
        """Book a leased row that was redirected to a URL that this crawl does not own."""
        return self.book_failure(row, REDIRECT_AWAY)

    def revise(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """Describe samples again: `actions` [n, 3] are their features 4 to 6 by the topic of now.

        Those that do not wait any more keep theirs.
        """
        waits = self.store.is_pending(rows)
        rows = rows[waits]
        self.store.revise(rows, actions[waits])
        self.policy.revise(rows)

    def change_cap(self, cap: Cap | None, own: Container[int] | None = None) -> Rows:
        """Set a new cap MAX of pages per domain; return the samples that may be fetched again.

        They were dropped because their domains had reached the old cap. If `own` is given, only
        samples in it come back: the others have no request of the spider.
        """
        ledger = self.store.ledger
        domains = np.arange(len(ledger), dtype=np.int32)
        before = ledger.exhausted(domains)
        ledger.cap = cap
        rows = self.store.readmit(before & ~ledger.exhausted(domains), own)
        seeds = np.intersect1d(rows, self.store.seeds(), assume_unique=True)
        self._first.push(seeds, np.zeros(len(seeds)))
        self.policy.readmit(np.setdiff1d(rows, seeds, assume_unique=True))
        return rows

    def next(self, busy_hosts: Sequence[int] = ()) -> Decision | None:
        """Lease the next sample to fetch; return None if no sample can be fetched now."""
        if self.limit is not None and self.pages + self.leased >= self.limit:
            return None
        if not self.store.may_be_ready(busy_hosts):
            return None
        if self.scout is not None and len(rows := self.scout.take(self.pages)):
            self._first.push(rows, np.zeros(len(rows)))
        decision = self._next_of(self._first, busy_hosts) or self.policy.select(busy_hosts)
        if decision is None and not self.patience.waiting:
            decision = self._next_of(self._last, busy_hosts)
        if decision is not None:
            self._chosen.pop(decision.row, None)  # the policy may choose it before its queue does
            x = self.store.features(np.array([decision.row]))[0]
            experience = Experience(decision.row, x, 0.0)
            self._leased[decision.row] = Lease(decision, experience, self.store.url(decision.row))
            self.store.lease(decision.row)
        return decision

    def set_back(self, row: int, *, last: bool = False) -> None:
        """Return a leased row to the frontier; the crawl learns nothing from the fetch.

        It is fetched before all other samples, or, if `last`, when no other can be fetched.
        """
        self._chosen[row] = self._leased.pop(row).decision._replace(choice=None)  # it is large
        self.store.release(row)
        (self._last if last else self._first).push(np.array([row]), [0.0])

    def bring_forward(self, rows: Sequence[int]) -> None:
        """Fetch these samples that were set back before all others."""
        waiting = [row for row in rows if self.store["state"][row] == State.PENDING]
        self._first.push(np.array(waiting, dtype=np.int64), np.zeros(len(waiting)))

    def redirect(self, row: int, url: str) -> bool:
        """Redirect a leased row to another URL; return False if that URL must not be fetched.

        It must not if it is closed, its domain is full or its host is given up. The row is booked
        on the new domain.
        """
        if self.store.closure.is_closed(url) or self.store.is_given_up(url):
            return False
        domain = self.store.domain_of(url)
        if domain != self.store["domain"][row] and self.store.ledger.full(np.array([domain]))[0]:
            return False
        self.store.redirect(row, url)
        return True

    def book_page(
        self,
        row: int,
        relevant: bool,
        links: Outlinks,
        *,
        grade: float = 0.0,
        text: PageText = NO_TEXT,
    ) -> Booking:
        """Book the page of a leased row; its links become frontier samples.

        The answer to a search query is not a page of T and not a visit to its domain. `grade` says
        how near the page came to being relevant. `text` is for policies that read page texts.
        """
        lease = self._leased[row]
        is_query = lease.decision.is_query
        is_trusted = self.trusted_seeds and self.store.is_seed(row)
        reward = reward_of(relevant, is_trusted=is_trusted, is_query=is_query)
        experience = self._observe(row, reward, grade)
        if is_query:
            path = SEED_PATH
        else:
            self._count(row, relevant)
            path = self.store.path_after(row, reward)
        self.store.finish(row, path)
        outlinks = self._add(row, links)
        if self.scout is not None and self.store.is_seed(row):
            self.scout.note(outlinks)
        self._expand(experience, outlinks, text)
        return Booking(experience, bool(relevant), QUERY if is_query else PAGE, outlinks, lease)

    def book_failure(self, row: int, failure: Failure) -> Booking:
        """Book a leased row whose fetch failed: it is not a page of T."""
        lease = self._leased[row]
        experience = self._observe(row, FAILURE_REWARD)
        self.failures[failure.kind] += 1
        if not lease.decision.is_query:  # a search query is not a visit either
            domain = self.store["domain"][row]
            self.store.ledger.book_failure(
                domain, blameless=failure.blameless, dead_link=failure.is_of_link
            )
        self.store.finish(row)
        self._expand(experience, NO_ROWS)
        return Booking(experience, False, failure.kind, NO_ROWS, lease)

    def book_data(self, row: int, links: Outlinks = NO_LINKS) -> Booking:
        """Book a leased row whose answer is not a page, but which the spider has used.

        Nothing is learned from it, and it does not count for its domain. Its links are to the
        frontier as if a seed had them.
        """
        lease = self._leased.pop(row)
        self.counts["data_answers"] += 1
        self.store.finish(row, SEED_PATH)
        outlinks = self._add(row, links)
        self.policy.readmit(outlinks)
        return Booking(lease.experience, False, DATA, outlinks, lease)

    def restore(
        self, pages: int, relevant: int, failures: Counter[str], counts: Counter[str]
    ) -> None:
        """Continue with the counts of an interrupted crawl."""
        self.pages, self.relevant, self.failures, self.counts = pages, relevant, failures, counts
        self.store.admission.left_out = counts.pop(LEFT_OUT, 0)
        for name in [name for name in counts if name.startswith(LINKS_REFUSED)]:
            self.store.admission.refused[name.removeprefix(LINKS_REFUSED)] = counts.pop(name)
        if self.limit is not None:
            self.store.ledger.note_progress(self.pages, self.limit)

    def restore_first(self, decisions: Sequence[Decision]) -> None:
        """Fetch these PENDING samples, seeds or chosen before, ahead of all others."""
        self._chosen |= {decision.row: decision for decision in decisions}
        rows = np.array([decision.row for decision in decisions], dtype=np.int64)
        self._first.push(rows, np.zeros(len(rows)))

    def figures(self) -> dict[str, float | str]:
        """Return the figures of the crawl and its policy, by stat name."""
        figures: dict[str, float | str] = {
            "pages": self.pages,
            "relevant_pages": self.relevant,
            "harvest_rate": self.harvest_rate,
            "relevant_domains": self.store.ledger.relevant_domains,
            "frontier_size": self.store.pending,
            LEFT_OUT: self.store.admission.left_out,
            "domains_given_up": self.store.ledger.domains_given_up,
            "hosts_given_up": len(self.store.hosts.gone),
        }
        figures |= self.counts
        figures |= {f"failures/{kind}": count for kind, count in self.failures.items()}
        if self.loss is not None:
            figures["q_loss"] = self.loss
        return figures | self.policy.figures()

    def _add(self, parent: int, links: Outlinks, *, is_answer: bool = False) -> Rows:
        """Add outlinks to the frontier, count those that the scope refuses, and return the rows."""
        rows = self.store.add(parent, links, is_answer=is_answer)
        if self.store.admission.scope is not None:
            self.counts.update(self.store.admission.scope.taken_counts())
        return rows

    def _next_of(self, queue: FrontierQueue, busy_hosts: Sequence[int]) -> Decision | None:
        first = queue.pop(busy_hosts)
        if first is None:
            return None
        row, _ = first
        return self._chosen.pop(row, Decision(row, None, None))

    def _count(self, row: int, relevant: bool) -> None:
        """Count a page of T, for HR and for its domain."""
        ledger = self.store.ledger
        self.pages += 1
        self.relevant += bool(relevant)
        ledger.book_page(self.store["domain"][row], float(relevant))
        if self.limit is not None:
            ledger.note_progress(self.pages, self.limit)

    def _observe(self, row: int, reward: float, grade: float = 0.0) -> Experience:
        experience = self._leased.pop(row).experience._replace(reward=reward, grade=grade)
        self.policy.observe(experience)
        return experience

    def _expand(self, experience: Experience, outlinks: Rows, text: PageText = NO_TEXT) -> None:
        self.policy.expand(experience, outlinks, text)
        loss = self.policy.learn()
        if loss is not None:
            self.loss = loss
