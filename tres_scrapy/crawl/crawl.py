"""The crawl of Algorithm 3: choose a sample, fetch, reward, expand its outlinks (Appendix B)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import NO_TEXT, Decision, Experience, PageText, Policy
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.failure import REDIRECT_AWAY, Failure
from tres_scrapy.crawl.outlook import Outlook
from tres_scrapy.crawl.scout import Scout
from tres_scrapy.crawl.verdict import FAILURE_REWARD, FOREIGN, Revision, Verdicts
from tres_scrapy.frontier.admission import NO_LINKS, OF_PAGE, OUT_OF_SCOPE, Outlinks
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.queue import FrontierQueue
from tres_scrapy.frontier.store import NO_PARENT, SampleStore, State
from tres_scrapy.topic.pack import Judged

# Kinds of a booking; failures have other kinds. DATA is an answer that is not a page, but that the
# spider has used.
PAGE, DATA = "page", "data"

LEFT_OUT = "links_left_out"
POSTPONED = "postponed/"  # and the kind of a failure: fetches that were set back
LINKS_REFUSED = "links_refused/"  # and the name of a rule
SEEN_A_FETCH: Final = 10  # answers seen before a patient crawl has one more fetch under way
NO_ROWS: Rows = np.zeros(0, dtype=np.int64)


class Booking(NamedTuple):
    """The result of a leased sample: `kind` is PAGE, DATA or the kind of a failure.

    `relevant` is the verdict on its page. A trusted seed earns 1 even if it is not relevant.
    `judged` is the page, None if there is none.
    """

    experience: Experience
    relevant: bool
    kind: str
    outlinks: Rows
    decision: Decision
    judged: Judged | None = None


class Crawl:
    """Turns frontier samples into experiences, in the order of Algorithm 3.

    A sample that `next` returns is leased until it is booked or set back. The crawl ends after
    `limit` pages, if a limit is set. With `trusted_seeds` the page of a seed earns 1, whatever it
    is, as in the paper. `scout` adds random links to the first pages.
    """

    def __init__(
        self,
        store: SampleStore,
        policy: Policy,
        limit: int | None = None,
        *,
        trusted_seeds: bool = False,
        scout: Scout | None = None,
        verdicts: Verdicts | None = None,
    ) -> None:
        self.store = store
        self.policy = policy
        self.limit = limit
        self.trusted_seeds = trusted_seeds
        self.scout = scout
        self.verdicts = verdicts or Verdicts()
        self.revision = Revision(store, trusted_seeds=trusted_seeds)
        self.outlook = Outlook(store)
        self.pages = 0
        self.relevant = 0
        self.failures: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()  # other counts, by stat name
        self.loss: float | None = None
        self.available = ANY_HOST  # at the last choice
        self.waits = False  # whether it was to wait for a better sample
        self._first = FrontierQueue(store)  # seeds, and samples that were leased before
        self._last = FrontierQueue(store)  # samples set back that wait for their host
        self._chosen: dict[int, Decision] = {}  # of the latter samples
        self._leased: dict[int, Decision] = {}
        self._suspects: list[int] = []  # samples that are fetched one at a time, in order

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

    def decision_of(self, row: int) -> Decision:
        """Return why a leased row was chosen."""
        return self._leased[row]

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

    def redirect_away(self, row: int, url: str) -> Failure:
        """Return the failure of a leased row that was redirected to a URL of another crawl."""
        return REDIRECT_AWAY

    def revise(self, rows: Rows, actions: NDArray[np.float32]) -> None:
        """Describe samples again: `actions` [n, 3] are their features 4 to 6 by the topic of now.

        Those that do not wait any more keep theirs.
        """
        waits = self.store.is_pending(rows)
        rows = rows[waits]
        self.store.revise(rows, actions[waits])
        self.policy.revise(rows)

    def relearn(self, again: Mapping[str, float]) -> None:
        """Correct the lessons of earlier pages by their P(relevant) now, by sketch."""
        self.policy.relearn(self.revision.lessons(again, self.verdicts))

    def count(self, name: str, change: int = 1) -> None:
        """Add to a count of the crawl, which is a stat and is kept in JOBDIR."""
        self.counts[name] += change

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

    def next(self, available: Availability = ANY_HOST) -> Decision | None:
        """Lease the next sample to fetch; return None if no sample can be fetched now."""
        self.available, self.waits = available, False
        if self.limit is not None and self.pages + self.leased >= self.limit:
            return None
        if not self.store.may_be_ready(available):
            return None
        if self.scout is not None and len(rows := self.scout.take(self.pages)):
            self._first.push(rows, np.zeros(len(rows)))
        if self._suspects and self.store["state"][self._suspects[0]] == State.DONE:
            del self._suspects[0]
            self.bring_forward(self._suspects[:1])
        decision = self._next_of(self._first, available)
        if decision is None and available.patient:
            seen = self.pages + self.failures.total()
            self.waits = self.leased > seen / SEEN_A_FETCH
        if decision is None and not self.waits:
            decision = self.policy.select(available)
            self.waits = self.policy.waits
        if decision is None and not self.waits:
            decision = self._next_of(self._last, available)
        if decision is not None:
            self._chosen.pop(decision.row, None)  # the policy may choose it before its queue does
            x = self.store.features(np.array([decision.row]))[0]
            decision = decision._replace(url=self.store.url(decision.row), x=x)
            self._leased[decision.row] = decision
            self.store.lease(decision.row)
        return decision

    def set_back(self, row: int, *, last: bool = False) -> None:
        """Return a leased row to the frontier; the crawl learns nothing from the fetch.

        It is fetched before all other samples, or, if `last`, when no other can be fetched.
        """
        self._chosen[row] = self._leased.pop(row)._replace(choice=None)  # it is large
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

    def decide(self, row: int, judged: Judged, waiting: Rows = NO_ROWS) -> Judged | Failure:
        """Return the page of a leased row with its verdict, or why it is none.

        `waiting` are the samples that were described again with it.
        """
        self.revision.note(judged.model, described=judged.described is not None)
        if judged.again:
            self.relearn(judged.again)
        if judged.described is not None:
            self.revise(waiting, judged.described)
        self.store.names.learn(judged.names)  # of any page: each text is sent once
        store, site = self.store, int(self.store["domain"][row])
        page = self.verdicts.of(judged, store.admission.scope, site)
        if isinstance(page, Failure):
            return page
        store.ledger.note_known(site, page.known)
        depth, path, anchor = store.depth(row), store.trail(row), store.anchors[row]
        return page._replace(depth=depth, path=path, anchor=anchor)

    def book(
        self, row: int, result: Judged | Failure | None, links: Outlinks = NO_LINKS
    ) -> Booking:
        """Book a leased row; the links of its page become frontier samples.

        A Failure is no page of T. None is an answer that is no page, but that the spider has used:
        nothing is learned from it, and its links are to the frontier as if a seed had them.
        """
        decision = self._leased.pop(row)
        if isinstance(result, Judged):
            return self._book_page(decision, result, links)
        if isinstance(result, Failure):
            return self._book_failure(decision, result)
        self.counts["data_answers"] += 1
        self.store.finish(row, SEED_PATH)
        outlinks = self._add(row, links)
        self.policy.readmit(outlinks)
        return Booking(Experience(row, decision.x, 0.0), False, DATA, outlinks, decision)

    def _book_page(self, decision: Decision, judged: Judged, links: Outlinks) -> Booking:
        row, relevant = decision.row, judged.relevant
        self._count_kind(judged)
        is_trusted = self.trusted_seeds and self.store.is_seed(row)
        reward = float(judged.earns or is_trusted)
        experience = self._observe(decision, reward, self.verdicts.grade_of(judged))
        self.revision.recognise(row, judged.mark)
        self._count(row, relevant)
        self.store.finish(row, self.store.path_after(row, reward))
        outlinks = self._add(row, links)
        if self.scout is not None and self.store.is_seed(row):
            self.scout.note(outlinks)
        self._expand(experience, outlinks, judged)
        self.store.hosts.mark_known(self.store["host"][row])  # it may come from Scrapy's cache
        return Booking(experience, relevant, PAGE, outlinks, decision, judged)

    def _book_failure(self, decision: Decision, failure: Failure) -> Booking:
        row = decision.row
        experience = self._observe(decision, FAILURE_REWARD)
        self.failures[failure.kind] += 1
        domain = self.store["domain"][row]
        self.store.ledger.book_failure(
            domain,
            blameless=failure.blameless,
            dead_link=failure.is_of_link,
            finder=self.store.finder(row),
        )
        self.store.finish(row)
        self._expand(experience, NO_ROWS)
        return Booking(experience, False, failure.kind, NO_ROWS, decision)

    def restore(
        self, pages: int, relevant: int, failures: Counter[str], counts: Counter[str]
    ) -> None:
        """Continue with the counts of an interrupted crawl."""
        self.pages, self.relevant, self.failures, self.counts = pages, relevant, failures, counts
        names = [name for name in counts if name.startswith(LINKS_REFUSED)]
        refused = Counter({name.removeprefix(LINKS_REFUSED): counts.pop(name) for name in names})
        self.store.admission.restore(counts.pop(LEFT_OUT, 0), refused)
        if self.limit is not None:
            self.store.ledger.note_progress(self.pages, self.limit)

    def remember(self, marks: Iterable[tuple[int, bytes]]) -> None:
        """Compare new pages also with those of an interrupted crawl: rows and fingerprints."""
        for row, mark in marks:
            self.revision.recognise(row, mark)
            site = int(self.store["domain"][row])
            self.store.ledger.note_known(site, self.verdicts.compare(mark, site)[1])

    def restore_first(
        self, decisions: Sequence[Decision], suspects: Sequence[Decision] = ()
    ) -> None:
        """Fetch these PENDING samples ahead of all others; of the suspects, one at a time."""
        self._suspects = [decision.row for decision in suspects]
        self._chosen |= {decision.row: decision for decision in [*decisions, *suspects]}
        rows = np.array([each.row for each in [*decisions, *suspects[:1]]], dtype=np.int64)
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
        return figures | self.outlook.figures() | self.policy.figures()

    def _add(self, parent: int, links: Outlinks, *, is_answer: bool = False) -> Rows:
        """Add outlinks to the frontier, count those that the scope refuses, and return the rows."""
        rows = self.store.add(parent, links, is_answer=is_answer)
        self.counts.update(self.store.admission.taken_counts())
        return rows

    def _next_of(self, queue: FrontierQueue, available: Availability) -> Decision | None:
        first = queue.pop(available)
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

    def _count_kind(self, judged: Judged) -> None:
        """Count links cut, copies, echoes, and languages not wanted or not known to the pack."""
        language = judged.page.language
        kinds = {
            OUT_OF_SCOPE + OF_PAGE: judged.page.links_cut,
            "duplicates": judged.is_copy,
            "echoes": judged.relevant and not judged.earns,
            f"{OUT_OF_SCOPE}languages": judged.is_foreign,
            FOREIGN + language: self.verdicts.is_unsupported(language),
        }
        self.counts.update({kind: int(count) for kind, count in kinds.items() if count})

    def _observe(self, decision: Decision, reward: float, grade: float = 0.0) -> Experience:
        experience = Experience(decision.row, decision.x, reward, grade)
        self.policy.observe(experience)
        self.outlook.note(int(self.store["host"][decision.row]), relevant=reward > 0)
        return experience

    def _expand(self, experience: Experience, outlinks: Rows, judged: Judged | None = None) -> None:
        text = NO_TEXT
        if judged is not None and self.policy.reads_text:
            text = PageText.of(judged.page, judged.probability)
        self.policy.expand(experience, outlinks, text)
        loss = self.policy.learn()
        if loss is not None:
            self.loss = loss
