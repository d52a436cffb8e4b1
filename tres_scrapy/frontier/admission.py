"""Which links enter the frontier: the closure (P 2.2), the scope and the caps."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.limit import ScopeOptions
from tres_scrapy.frontier.column import Table, within
from tres_scrapy.frontier.finder import finders_of
from tres_scrapy.frontier.host import Hosts, host_of
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.links.code import RaggedArray, silent

NO_ACTIONS: Final[NDArray[np.float32]] = np.zeros((0, 3), dtype=np.float32)
NO_CUES: Final = silent(0)
# Rules by which links are not fetched, by the name of their setting
AT_MAX, FAILED, RESTED = "max_per_domain", "max_failures", "max_rests"
OF_PAGE, OF_DOMAIN = "links_of_page", "links_of_domain"  # limits that leave links out
MAX_TEXT: Final = 50_000_000  # characters of new URLs and anchor texts that a domain's pages bring
OUT_OF_SCOPE: Final = "out_of_scope/"  # prefix in the counts of a crawl, followed by the rule
_DIGITS: Final = re.compile(r"\d+")


class Outlinks(NamedTuple):
    """The links of a page that are followed.

    `actions` [n, 3] holds their features 4 to 6. `cues` holds what they say, None if only their
    URLs and anchor texts are known.
    """

    urls: Sequence[str] = ()
    anchors: Sequence[str] = ()
    actions: NDArray[np.float32] = NO_ACTIONS
    cues: RaggedArray | None = None

    def take(self, places: Sequence[int]) -> Outlinks:
        """Return some of the links."""
        return Outlinks(
            [self.urls[i] for i in places],
            [self.anchors[i] for i in places],
            self.actions[list(places)],
            None if self.cues is None else self.cues.take(places),
        )


NO_LINKS: Final = Outlinks()


class Closure:
    """URLs by number, each stored once however many pages link to it.

    A redirect closes every URL on its way.
    """

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.passed = array("q")  # numbers of the URLs that redirects of DONE rows led through
        self._numbers: dict[str, int] = {}
        self._passing: dict[str, int] = {}  # redirect URL: its LEASED row
        self._closed = Table(np.dtype([("closed", "?")]))
        self._refuses: list[Callable[[str], bool]] = []

    def number_of(self, url: str) -> int:
        """Return the number of a URL; a new URL gets the next number."""
        number = self._numbers.setdefault(url, len(self.urls))
        if number == len(self.urls):
            self.urls.append(url)
            self._closed.extend(1)
        return number

    def knows(self, url: str) -> bool:
        """Return whether a URL has a number."""
        return url in self._numbers

    def is_closed(self, url: str) -> bool:
        """Return whether a URL is fetched or being fetched, or must not be."""
        if any(refuses(url) for refuses in self._refuses):
            return True
        number = self._numbers.get(url)
        return number is not None and bool(self._closed["closed"][number])

    def closed(self, numbers: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which of the URLs [n] are fetched or being fetched."""
        return self._closed["closed"].take(numbers)

    def close(self, numbers: NDArray[np.integer] | int) -> None:
        """Note that the URLs of these numbers are fetched or being fetched."""
        self._closed["closed"][numbers] = True

    def refuse(
        self, refuses: Callable[[str], bool], known: NDArray[np.int64] | None = None
    ) -> None:
        """Close more URLs that must not be fetched.

        `known` are the numbers of those that have one; without it, they are looked for.
        """
        self._refuses.append(refuses)
        if known is None:
            known = np.array([n for n, url in enumerate(self.urls) if refuses(url)], np.int64)
        self.close(known)

    def reopen(self, number: int) -> None:
        """Note that the URL of this number is to be fetched again."""
        self._closed["closed"][number] = False

    def redirect(self, row: int, url: str) -> int:
        """Close the URL that a LEASED row was redirected to; return its number."""
        number = self.number_of(url)
        self.close(number)
        self._passing[url] = row
        return number

    def settle(self, row: int, end: int) -> None:
        """Note that a row is DONE and that its redirects ended at the URL of number `end`."""
        if self._passing:
            numbers = [self._numbers[url] for url, by in self._passing.items() if by == row]
            self.passed.extend(number for number in numbers if number != end)
            self._passing = {url: by for url, by in self._passing.items() if by != row}

    def restore(self, urls: Sequence[str]) -> None:
        """Fill an empty closure with URLs in the order of their numbers."""
        self.urls.extend(urls)
        self._numbers = {url: number for number, url in enumerate(urls)}
        self._closed.extend(len(urls))

    def restore_passed(self, numbers: NDArray[np.int64]) -> None:
        """Close the URLs that redirects of DONE rows led through."""
        within(numbers, len(self.urls))
        self.close(numbers)
        self.passed.extend(numbers.tolist())


class Refusal(NamedTuple):
    """The rule that refuses a link, and what it says."""

    rule: str
    said: str


class Scope:
    """Says which links may enter the frontier; counts those that may not, and URLs by directory.

    Each link that is refused counts, also if its URL was refused before.
    """

    def __init__(self, options: ScopeOptions) -> None:
        self.options = options
        self._allow = _compiled(options.allow)
        self._deny = _compiled(options.deny)
        self._counts: Counter[str] = Counter()
        self._directories: Counter[str] = Counter()

    @classmethod
    def of(cls, options: ScopeOptions) -> Self | None:
        """Return the scope, None if no rule is set."""
        return None if options == ScopeOptions() else cls(options)

    def admitted(self, links: Iterable[tuple[int, str, bool]], depth: int) -> Iterator[int]:
        """Yield the keys of the links that may enter; each is (key, URL, whether it is known).

        `depth` is the number of links from the seed. Known URLs have entered before, so they do not
        count towards their directory. The others count for the rest of `links`; call `enter` for
        those that do enter.
        """
        entered: list[str] = []
        for key, url, known in links:
            refusal = self.refusal(url, depth, known=known)
            if refusal is not None:
                self._counts[OUT_OF_SCOPE + refusal.rule] += 1
                continue
            if not known:
                self.enter([url])
                entered.append(url)
            yield key
        self._leave(entered)

    def enter(self, urls: Sequence[str]) -> None:
        """Count URLs that are in the frontier, by directory."""
        if self.options.max_per_path is not None:
            self._directories.update(map(directory_of, urls))

    def _leave(self, urls: Sequence[str]) -> None:
        if self.options.max_per_path is not None:
            self._directories.subtract(map(directory_of, urls))
            for directory in map(directory_of, urls):
                if not self._directories[directory]:
                    del self._directories[directory]

    def refusal(self, url: str, depth: int = 0, *, known: bool = False) -> Refusal | None:
        """Return the first rule that refuses a URL, None if it may be fetched."""
        return next(self._refusals(url, depth, known=known), None)

    def _refusals(self, url: str, depth: int, *, known: bool) -> Iterator[Refusal]:
        options, host = self.options, host_of(url)
        if options.max_depth is not None and depth > options.max_depth:
            yield Refusal("max_depth", str(options.max_depth))
        for name in _listed(host, options.denied_domains):
            yield Refusal("denied_domains", name)
        if options.allowed_domains and not _listed(host, options.allowed_domains):
            yield Refusal("allowed_domains", f"{host} is not in it")
        for pattern in self._deny:
            if pattern.search(url):
                yield Refusal("deny", pattern.pattern)
        if self._allow and not any(pattern.search(url) for pattern in self._allow):
            yield Refusal("allow", "the URL does not match")
        most = options.max_per_path
        if most is not None and not known and self._directories[directory_of(url)] >= most:
            yield Refusal("max_per_path", f"{most} URLs of {directory_of(url)}")

    def reads(self, language: str) -> bool:
        """Return whether a page in a language may be relevant; "" is an unknown one."""
        return not self.options.languages or language in {"", *self.options.languages}

    def taken_counts(self) -> Counter[str]:
        """Return how many links were refused since the last call, by stat name."""
        counts, self._counts = self._counts, Counter()
        return counts


def directory_of(url: str) -> str:
    """Return the directory of a URL, each number in it as 0: /2026/11/a is in /0/0/."""
    place = url.partition("?")[0].partition("://")[2]
    host, _, path = place.partition("/")
    return f"{host}/{_DIGITS.sub('0', path.rpartition('/')[0])}/".replace("//", "/")


def _compiled(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in patterns]


def _listed(host: str, names: Iterable[str]) -> list[str]:
    """Return the names that a host is or ends with, at a dot."""
    return [name for name in names if f".{host}".endswith(f".{name}")]


class Admission:
    """Decides which links become samples: open ones, in scope, below the caps.

    `left_out` counts links that did not fit into the frontier, `refused` those that a rule kept
    out, by the name of its setting.
    """

    def __init__(
        self, closure: Closure, hosts: Hosts, ledger: DomainLedger, scope: Scope | None = None
    ) -> None:
        self.scope = scope  # of links; seeds are exempt
        self.left_out = 0
        self.refused: Counter[str] = Counter()
        self._closure = closure
        self._hosts = hosts
        self._ledger = ledger
        self._texts: Counter[int] = Counter()  # characters kept since the start, by domain
        self._cut: Counter[str] = Counter()

    def within_share(self, domain: int, links: Outlinks, kept: list[int]) -> list[int]:
        """Return those of the `kept` links of a domain's page whose texts it may still add.

        A site could fill the disk with long URLs that nothing will ever fetch.
        """
        urls, anchors = links.urls, links.anchors
        new = [0 if self._closure.knows(urls[i]) else len(urls[i]) + len(anchors[i]) for i in kept]
        total = np.cumsum([0, *new])
        fit = int(np.searchsorted(total, MAX_TEXT - self._texts[domain], side="right")) - 1
        self._texts[domain] += int(total[fit])
        self._cut[OUT_OF_SCOPE + OF_DOMAIN] += len(kept) - fit
        return kept[:fit]

    def taken_counts(self) -> Counter[str]:
        """Return how many links were left out since the last call, by stat name."""
        counts = +self._cut
        self._cut.clear()
        return counts if self.scope is None else counts + self.scope.taken_counts()

    def admit(
        self,
        urls: Sequence[str],
        hosts: Sequence[str],
        depth: int | None,
        room: int,
        finder: int | None = None,
    ) -> list[int]:
        """Return the positions of links that can still be fetched and fit into the frontier.

        Of the other links, neither URL nor host is stored. Without a depth the links are seeds. The
        `finder` is the domain of the page with the links.
        """
        open_ = [i for i, url in enumerate(urls) if not self._closure.is_closed(url)]
        if self.scope is not None and depth is not None:
            links = ((i, urls[i], self._closure.knows(urls[i])) for i in open_)
            open_ = list(self.scope.admitted(links, depth))
        first = open_[: max(0, room)]
        domains = np.array([self._hosts.domain_of(hosts[i]) for i in first], dtype=np.int32)
        rested = np.array([hosts[i] in self._hosts.gone for i in first], dtype=np.bool_)
        failed, full = self._ledger.given_up(domains), self._ledger.at_cap(domains)
        if finder is not None:
            failed |= self._ledger.ended(np.full_like(domains, finder), domains)
        alive = np.flatnonzero(~(rested | failed | full))
        if len(alive) < len(first):
            rules = _rules(rested, failed, full)
            late = np.array([not self._closure.knows(urls[i]) for i in first], dtype=np.bool_)
            self.refused.update(rules[late & (rules != "")].tolist())
        fits = _equal_before(domains[alive]) < self._ledger.room(domains[alive])
        self.left_out += len(open_) - len(first) + int(np.count_nonzero(~fits))
        kept = [open_[i] for i in alive[fits]]
        if self.scope is not None and depth is not None:
            self.scope.enter([*{urls[i]: None for i in kept if not self._closure.knows(urls[i])}])
        return kept

    def restore(self, left_out: int, refused: Counter[str]) -> None:
        """Continue with the counts of an interrupted crawl."""
        self.left_out, self.refused = left_out, refused

    def refusals(self, samples: Table) -> Counter[str]:
        """Return how many links are not fetched because of a rule, by the name of its setting.

        These are the URLs of samples that wait, and the links to others that were found too late.
        """
        rows = np.flatnonzero(~self._closure.closed(samples["url"]))
        rows = rows[np.unique(samples["url"][rows], return_index=True)[1]]
        domains, hosts = samples["domain"].take(rows), samples["host"].take(rows)
        ledger = self._ledger
        finders = finders_of(samples, rows)
        rested = self._hosts.given_up(hosts) | self._hosts.failing.ended(finders, hosts)
        failed = ledger.given_up(domains) | ledger.ended(finders, domains)
        rules = _rules(rested, failed, ledger.at_cap(domains))
        return self.refused + Counter(rules[rules != ""].tolist())


def _rules(
    rested: NDArray[np.bool_], failed: NDArray[np.bool_], full: NDArray[np.bool_]
) -> NDArray[np.str_]:
    """Return the rule by which links are not fetched [n], "" for those that are."""
    return np.select([rested, failed, full], [RESTED, FAILED, AT_MAX], "")


def _equal_before(numbers: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return for each of the numbers [n] how many equal numbers come before it."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    before = np.empty(len(numbers), dtype=np.int64)
    before[order] = np.arange(len(numbers)) - np.searchsorted(ordered, ordered)
    return before
