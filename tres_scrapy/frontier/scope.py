"""The scope of a crawl: which links may enter the frontier, and which rule refuses the others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Self

from tres_scrapy.config.scope_option import ScopeOptions
from tres_scrapy.frontier.host import host_of

REFUSED: Final = "out_of_scope/"  # prefix in the counts of a crawl, followed by the rule
_DIGITS: Final = re.compile(r"\d+")


class Refusal(NamedTuple):
    """The rule that refuses a link, and what it says."""

    rule: str
    said: str


class Scope:
    """Says which links may enter the frontier; counts those that may not, and URLs by directory.

    Each link that is refused counts, also if its URL was refused before.
    """

    def __init__(self, options: ScopeOptions) -> None:
        self._options = options
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
                self._counts[REFUSED + refusal.rule] += 1
                continue
            if not known:
                self.enter([url])
                entered.append(url)
            yield key
        self._leave(entered)

    def enter(self, urls: Sequence[str]) -> None:
        """Count URLs that are in the frontier, by directory."""
        if self._options.max_per_path is not None:
            self._directories.update(map(directory_of, urls))

    def _leave(self, urls: Sequence[str]) -> None:
        if self._options.max_per_path is not None:
            self._directories.subtract(map(directory_of, urls))
            for directory in map(directory_of, urls):
                if not self._directories[directory]:
                    del self._directories[directory]

    def refusal(self, url: str, depth: int = 0, *, known: bool = False) -> Refusal | None:
        """Return the first rule that refuses a URL, None if it may be fetched."""
        return next(self._refusals(url, depth, known=known), None)

    def _refusals(self, url: str, depth: int, *, known: bool) -> Iterator[Refusal]:
        options, host = self._options, host_of(url)
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
        return not self._options.languages or language in {"", *self._options.languages}

    def taken_counts(self) -> Counter[str]:
        """Return how many links were refused since the last call, by stat name."""
        counts, self._counts = self._counts, Counter()
        return counts


def directory_of(url: str) -> str:
    """Return the directory of a URL, each number in it as 0: /2026/11/a is in /0/0/."""
    place = url.partition("?")[0].partition("://")[2]
    host, _, path = place.partition("/")
    return f"{host}/{_DIGITS.sub('0', path.rpartition('/')[0])}/".replace("//", "/")


def refused_links(counts: Counter[str]) -> Counter[str]:
    """Return the number of refused links by rule, from the counts of a crawl."""
    return Counter(
        {
            name.removeprefix(REFUSED): count
            for name, count in counts.items()
            if name.startswith(REFUSED)
        }
    )


def _compiled(patterns: Iterable[str]) -> list[re.Pattern[str]]:
    return [re.compile(pattern) for pattern in patterns]


def _listed(host: str, names: Iterable[str]) -> list[str]:
    """Return the names that a host is or ends with, at a dot."""
    return [name for name in names if f".{host}".endswith(f".{name}")]
