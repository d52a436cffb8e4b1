"""Domains: features 7 and 8 (P 2.4.1), MAX pages per domain (P 2.2), what their pages say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.limit import Cap, FrontierLimits
from tres_scrapy.frontier.column import IntegerSet, Table
from tres_scrapy.frontier.finder import Finders
from tres_scrapy.page.copies import Known
from tres_scrapy.url.canonical import registrable_domain

_RECORD = np.dtype(
    [
        ("visits", "i4"),
        ("relevant", "i4"),
        ("pages", "i4"),
        ("stale", "i4"),  # pages without new phrases
        ("failures", "i4"),
        ("leased", "i4"),
        ("pending", "i4"),
        ("inlinks", "i4"),
        ("relevant_inlinks", "i4"),
        ("held", "i4"),  # fetches that were interrupted: they keep their slots of MAX
        ("budget", "i4"),  # 0: the domain has no budget, only MAX
        ("x", "f4", (2,)),  # features 7 and 8
    ]
)
_PAGE = np.dtype([("domain", "i4"), ("words", "i4"), ("new", "i4")])
_SPREAD = np.dtype([("domain", "i4"), ("page", "i4")])  # of a word: who said it first, where again
LIMITS: Final = FrontierLimits()
UNLIMITED: Final = np.iinfo(np.int32).max
RECENT: Final = 50_000  # pages whose words are compared: 100,000 would hold up the crawl for .4 s


class Said(NamedTuple):
    """What the pages of domains [N] say: counts of each domain, then pages [m] in their order.

    A word spreads when a second domain says it: words [k] that did have a domain that said them
    first and a page that did so next.
    """

    pages: NDArray[np.int32]
    relevant: NDArray[np.int32]
    stale: NDArray[np.int32]  # pages without new phrases
    domains: NDArray[np.int32]  # of pages [m],
    words: NDArray[np.int32]  # how many they have,
    new: NDArray[np.int32]  # and how many that no domain said before
    firsts: NDArray[np.int32]  # domains that said words [k] first,
    spread: NDArray[np.int32]  # and the pages on which they spread


class DomainLedger:
    """Counts fetches, relevant pages, failures in a row, leases and samples by registrable domain.

    In the paper, feature 7 is relevant pages / visits. After one relevant page it is 1, which draws
    the crawler from proven domains to unproven ones. `prior` adds that many visits of ratio 0.5 to
    each domain, so that few visits change the ratio little; 0 gives the paper's feature.

    For a domain never visited, the paper's feature 7 is 0.5. With `inlinks` it is r / (n + 1): n
    other domains link to it, r of them from a relevant page. Only the first linking page of each
    domain counts, because sites repeat their links on all their pages.
    """

    def __init__(
        self,
        cap: Cap | None = None,
        *,
        prior: float = 0.0,
        inlinks: bool = False,
        limits: FrontierLimits = LIMITS,
    ) -> None:
        self.cap = cap
        self.prior = prior
        self.inlinks = inlinks
        self.limits = limits
        self.progress = 0.0
        self._left = UNLIMITED  # pages of the crawl
        self.relevant_domains = 0  # domains with a relevant page: the second metric of both papers
        self.leased = 0  # fetches that run
        self.pages = 0  # of all domains
        self.names: list[str] = []
        self._ids: dict[str, int] = {}
        self.links = IntegerSet()  # links between domains as (from << 32) + to
        self._records = Table(_RECORD)
        self._pages, self._spread = Table(_PAGE), Table(_SPREAD)
        self._changed = set[int]()  # domains whose features are to be computed again
        self._failing = Finders(limits.failures)
        self.dead_hosts = Finders(limits.failures)  # by domain: hosts that never answered
        self._budgets = {registrable_domain(name): most for name, most in limits.budgets}

    def __len__(self) -> int:
        return len(self.names)

    def id_of_host(self, host: str) -> int:
        """Return the number of a host's registrable domain; a new domain gets the next number."""
        return self.id_of(registrable_domain(host))

    def id_of(self, domain: str) -> int:
        """Return the number of a registrable domain; a new domain gets the next number."""
        number = self._ids.setdefault(domain, len(self.names))
        if number == len(self.names):
            self.names.append(domain)
            self._records.extend(1)
            self._records["budget"][number] = self._budgets.get(domain, 0)
            self._changed.add(number)
        return number

    @property
    def domains_given_up(self) -> int:
        """The number of domains given up after too many failures, if only for some finders."""
        over = np.flatnonzero(self._records["failures"] >= self.limits.failures)
        return len(self._failing.targets.union(self.dead_hosts.targets, over.tolist()))

    def pages_of(self, domain: str) -> int:
        """Return the number of pages fetched from a registrable domain."""
        number = self._ids.get(domain)
        return 0 if number is None else int(self._records["pages"][number])

    def note_known(self, domain: int, known: Known) -> None:
        """Count what a page of a domain says that is new."""
        self._records["stale"][domain] += known.is_stale
        if known.words:
            page, spread = self._pages.extend(1), self._spread.extend(len(known.spread))
            self._pages["domain"][page], self._pages["words"][page] = domain, known.words
            self._pages["new"][page] = known.new_words
            self._spread["domain"][spread], self._spread["page"][spread] = known.spread, page.start

    @property
    def said(self) -> Said:
        """What the pages of the domains [N] say, of words the RECENT ones.

        Valid until a domain or page is added.
        """
        records, pages, spread = self._records, self._pages, self._spread
        first = max(0, len(pages["domain"]) - RECENT)
        start = int(np.searchsorted(spread["page"], first))
        return Said(
            records["pages"],
            records["relevant"],
            records["stale"],
            pages["domain"][first:],
            pages["words"][first:],
            pages["new"][first:],
            spread["domain"][start:],
            spread["page"][start:] - first,
        )

    def count_lease(self, domain: int, change: int = 1) -> None:
        """Count a fetch that starts (`change` 1) or ends (-1)."""
        self._records["leased"][domain] += change
        self.leased += change
        self._changed.add(domain)

    def count_held(self, domain: int, change: int = 1) -> None:
        """Count an interrupted fetch that waits (`change` 1) or waits no longer (-1)."""
        self._records["held"][domain] += change

    def count_pending(self, domains: NDArray[np.int32], change: int = 1) -> None:
        """Count samples [n] that become PENDING (`change` 1) or stop being so (-1)."""
        np.add.at(self._records["pending"], domains, change)

    def pending(self, domains: Sequence[int] | NDArray[np.int64]) -> int:
        """Return how many samples of these domains are PENDING."""
        return int(self._records["pending"].take(np.asarray(domains, dtype=np.int64)).sum())

    def add_inlinks(self, source: int, targets: NDArray[np.int32], *, relevant: bool) -> None:
        """Note that a page of domain `source` links to domains [n], which may repeat.

        Only the first page of a domain that links to another counts; links within a domain do not.
        """
        if not self.inlinks:
            return
        links = (source << 32) + targets[targets != source].astype(np.int64)
        new = self.links.add(links) & 0xFFFFFFFF
        self._records["inlinks"][new] += 1
        self._records["relevant_inlinks"][new] += relevant
        self._changed.update(new.tolist())

    def note_progress(self, pages: int, limit: int) -> None:
        """Note how many of the pages of the crawl are fetched: MAX may depend on it."""
        self.progress, self._left = pages / limit, max(0, limit - pages)

    def book_page(self, domain: int, reward: float) -> None:
        """Count a fetched page; this changes features 7 and 8 and counts towards the cap."""
        self._records["visits"][domain] += 1
        self._changed.add(domain)
        self._count_page(domain)
        if reward > 0:
            self.relevant_domains += not self._records["relevant"][domain]
            self._records["relevant"][domain] += 1
        self._failing.forget(domain)
        if self._records["failures"][domain] < self.limits.failures:  # else the domain is given up
            self._records["failures"][domain] = 0

    def book_failure(
        self,
        domain: int,
        *,
        blameless: bool = False,
        dead_link: bool = False,
        finder: int | None = None,
    ) -> None:
        """Count a failed fetch; this changes features 7 and 8, but does not count towards the cap.

        A `blameless` failure is not counted against a domain that has given pages, a `dead_link`
        against no domain. The `finder` is the domain with the link, unless it is the same.
        """
        self._records["visits"][domain] += 1
        self._changed.add(domain)
        if not (dead_link or (blameless and self._records["pages"][domain])):
            by = domain if finder is None else finder
            if self._failing.note(domain, by, own=by == domain):
                self._records["failures"][domain] += 1

    def ended(self, finders: NDArray[np.int32], domains: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which links [n] are given up, given their finders and domains.

        Too many links of the same finder to the same domain have failed in a row.
        """
        return self._failing.ended(finders, domains) | self.dead_hosts.ended(finders, domains)

    def count_unread(self, domain: int) -> None:
        """Count a page towards the cap that was fetched and is never booked."""
        self._count_page(domain)

    def give_up(self, domain: int) -> None:
        """Fetch no more of a domain."""
        self._records["failures"][domain] = self.limits.failures

    def restore(
        self,
        domains: NDArray[np.int32],
        pages: NDArray[np.bool_],
        relevant: NDArray[np.bool_],
        blameless: NDArray[np.bool_],
        dead: NDArray[np.bool_],
        *,
        finders: NDArray[np.int32],
    ) -> None:
        """Count past visits [n], oldest first, to `domains`; `finders` had the links.

        `pages` marks visits that gave a page, `relevant`, `blameless` and `dead` the kind of the
        result.
        """
        np.add.at(self._records["visits"], domains, 1)
        np.add.at(self._records["pages"], domains[pages], 1)
        self.pages += int(np.count_nonzero(pages))
        np.add.at(self._records["relevant"], domains[relevant], 1)
        self._changed.update(range(len(self)))
        failures, given = [0] * len(self), [False] * len(self)
        columns = (each.tolist() for each in (domains, pages, blameless, dead, finders))
        for domain, is_page, is_blameless, is_dead, finder in zip(*columns, strict=True):
            given[domain] |= is_page
            if is_page:
                self._failing.forget(domain)
                if failures[domain] < self.limits.failures:
                    failures[domain] = 0
            elif not (is_dead or (is_blameless and given[domain])):
                failures[domain] += self._failing.note(domain, finder, own=finder == domain)
        self._records["failures"][:] = failures
        self.relevant_domains = int(np.count_nonzero(self._records["relevant"]))

    def features(self, domains: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return features 7 (relevance ratio so far) and 8 (domain known) as [n, 2].

        A domain is known as soon as a fetch is running, so that choices made before it ends go to
        other domains.
        """
        if self._changed:
            some = np.array([*self._changed], dtype=np.int32)
            self._records["x"][some] = self._computed(some)
            self._changed.clear()
        return self._records["x"].take(domains, axis=0)

    def _count_page(self, domain: int) -> None:
        self._records["pages"][domain] += 1
        self.pages += 1

    def _computed(self, domains: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return features 7 and 8 of domains from their counts, [n, 2]."""
        visits = self._records["visits"].take(domains)
        relevant = self._records["relevant"].take(domains) + 0.5 * self.prior
        x = np.empty((len(domains), 2), dtype=np.float32)
        ratio = relevant / np.maximum(visits + self.prior, 1)
        x[:, 0] = np.where(visits > 0, ratio, self._inlink_ratio(domains))
        x[:, 1] = np.where(self.never_visited(domains), 0.5, 1.0)
        return x

    def _inlink_ratio(self, domains: NDArray[np.int32]) -> NDArray[np.floating]:
        """Return feature 7 of domains never visited, 0.5 if no other domain links there."""
        inlinks = self._records["inlinks"].take(domains)
        ratio = self._records["relevant_inlinks"].take(domains) / (inlinks + 1)
        return np.where(inlinks > 0, ratio, 0.5)

    def never_visited(self, domains: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which domains have no fetch, finished or running."""
        fetches = self._records["visits"].take(domains) + self._records["leased"].take(domains)
        return np.asarray(fetches == 0)

    def exhausted(self, domains: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which domains have given MAX pages or are given up."""
        return self.at_cap(domains) | self.given_up(domains)

    def full(self, domains: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which domains are given up or would exceed MAX with one more fetch."""
        return self.at_cap(domains, leased=True) | self.given_up(domains)

    def room(self, domains: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how many more samples of domains may become PENDING."""
        return self.limits.pending_per_domain - self._records["pending"].take(domains)

    def at_cap(self, domains: NDArray[np.int32], *, leased: bool = False) -> NDArray[np.bool_]:
        """Return which domains have given MAX pages, or will with the fetches that run."""
        if self.cap is None and not self._budgets:
            return np.zeros(len(domains), dtype=np.bool_)
        counts = self._records["pages"].take(domains)
        if leased:
            counts += self._records["leased"].take(domains) + self._records["held"].take(domains)
        return np.asarray(counts >= self._most(domains))

    def under_way(self, domains: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how many fetches of domains run [n]."""
        return self._records["leased"].take(domains)

    def pages_left(self, domains: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return how many more pages of domains the crawl may fetch [n], by MAX and its limit."""
        left: NDArray[np.int32] = self._most(domains) - self._records["pages"].take(domains)
        return left.clip(0, self._left)

    def _most(self, domains: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return MAX of domains [n]: a budget of their own, or that of all."""
        most = UNLIMITED if self.cap is None else min(self.cap.at(self.progress), UNLIMITED)
        if not self._budgets:
            return np.full(len(domains), most, dtype=np.int32)
        own = self._records["budget"].take(domains)
        return np.where(own > 0, own, most).astype(np.int32)

    def given_up(self, domains: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which domains are given up after too many failures in a row."""
        return np.asarray(self._records["failures"].take(domains) >= self.limits.failures)


class Availability(NamedTuple):
    """Which hosts must not get a request now: those that are `busy`, and all hosts of `domains`.

    `soon` are the busy hosts that are free in a moment and are worth waiting for. With `only_known`
    all hosts that have never answered are busy too. A `patient` crawl that has seen few pages waits
    for what those under way will teach. `closed` marks domains [n] that are out of their hours or
    have had their requests of the day; its last entry is for all later ones.
    """

    busy: Sequence[int] | NDArray[np.int64] = ()
    soon: Sequence[int] = ()
    only_known: bool = False
    patient: bool = False
    domains: Sequence[int] = ()
    closed: NDArray[np.bool_] | None = None

    def is_closed(self, domains: NDArray[np.integer]) -> NDArray[np.bool_]:
        """Return which of domains [n] are closed."""
        if self.closed is None:
            return np.zeros(len(domains), dtype=np.bool_)
        return self.closed.take(domains, mode="clip")


ANY_HOST: Final = Availability()
