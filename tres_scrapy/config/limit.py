"""MAX, the scope of a crawl, and limits that bound its memory and time on any web."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tres_scrapy.config.declaration import ConfigError, setting
from tres_scrapy.config.parser import budgets, flag, hosts, languages, patterns, whole
from tres_scrapy.config.typed import named
from tres_scrapy.url.canonical import is_public_suffix, registrable_domain


@dataclass(frozen=True, slots=True)
class Cap:
    """MAX, the most pages fetched from one domain; an adaptive MAX falls from `first` to `last`.

    As in the authors' code, an adaptive MAX is halved after each third of the crawl.
    """

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Cap | None:
        """Read "10", "5_2" or "none"; raise ValueError for anything else."""
        if text.strip().lower() in {"", "none"}:
            return None
        numbers = re.fullmatch(r"(\d+)(?:_(\d+))?", text.strip())
        if numbers is None:
            raise ValueError("must be a number, two like 5_2, or none")
        cap = cls(int(numbers[1]), int(numbers[2] or numbers[1]))
        if cap.last < 1:
            raise ValueError("must be at least 1: write none for no limit")
        if cap.first < cap.last:
            raise ValueError(f"must not rise: write {cap.last}_{cap.first}")
        return cap

    def __str__(self) -> str:
        return f"{self.first}_{self.last}" if self.first != self.last else str(self.first)

    def at(self, progress: float) -> int:
        """Return the cap when the share `progress` (0 to 1) of the crawl is done."""
        return max(self.last, self.first >> int(3 * progress))


@dataclass(frozen=True, slots=True)
class StopRule:
    """When a crawl has found enough: `kind` is coverage or yield, `value` a share, 0 to 1."""

    kind: str
    value: float

    @classmethod
    def parse(cls, text: str) -> StopRule:
        """Read "coverage:0.9" or "yield:0.02"; raise ValueError for anything else."""
        found = re.fullmatch(r"(coverage|yield):(0?\.\d+)", text.strip())
        if found is None or not float(found[2]):
            raise ValueError("must be coverage:SHARE or yield:SHARE, such as coverage:0.9")
        return cls(found[1], float(found[2]))

    def __str__(self) -> str:
        return f"{self.kind}:{self.value:g}"


@dataclass(frozen=True)
class ScopeOptions:
    """Rules that a link must satisfy to enter the frontier; seeds are exempt."""

    allow: tuple[str, ...] = setting(
        patterns,
        (),
        "regular expression: follow only links whose URL it matches; @FILE: one a line",
    )
    deny: tuple[str, ...] = setting(
        patterns,
        (),
        "regular expression: follow no link whose URL it matches; @FILE: one a line",
    )
    allowed_domains: tuple[str, ...] = setting(
        hosts, (), "follow only links to these domains and suffixes, and their subdomains"
    )
    denied_domains: tuple[str, ...] = setting(
        hosts, (), "follow no link to these domains and suffixes, and their subdomains"
    )
    languages: tuple[str, ...] = setting(
        languages,
        (),
        "languages of relevant pages, such as en,de; a page in another one is not relevant, its "
        "links are followed; unset: any",
    )
    max_depth: int | None = setting(
        whole(1), None, "most links between a seed and a page; unset: no limit"
    )
    max_per_path: int | None = setting(
        whole(1),
        None,
        "most URLs of one directory; directories that differ only in digits are one",
    )


@dataclass(frozen=True)
class FrontierLimits:
    """The most links that may wait, in all and per domain, and what a domain is and what ends it.

    Limits are per domain, not per host: a crawler trap can create any number of hosts.
    """

    pending: int = setting(
        whole(1), 10_000_000, "most links that wait in the frontier", name="max_frontier"
    )
    pending_per_domain: int = 1_000_000  # most links of one domain that wait
    failures: int = setting(
        whole(1),
        20,
        "give up a domain after this many failures in a row, dead links not counted",
        name="max_failures",
    )
    budgets: tuple[tuple[str, int], ...] = setting(
        budgets,
        (),
        "most pages of single domains, instead of `max_per_domain`: a file of lines such as "
        "`example.org 50`",
        name="domain_budgets",
    )

    def __post_init__(self) -> None:
        """Raise ConfigError if a budget is of a public suffix or of the domain of another."""
        names = [name for name, _ in self.budgets]
        check_domains("TRES_DOMAIN_BUDGETS", names, "pages")


def check_domains(setting: str, sites: Iterable[str], what: str) -> None:
    """Raise ConfigError unless each of `sites`, whose `what` are counted, is of a domain alone."""
    names: dict[str, str] = {}
    for name in sites:
        if is_public_suffix(name):
            raise ConfigError(
                f"{named(setting)}: {name!r} is not one domain: {what} are counted by domains "
                "such as example.org"
            )
        domain = registrable_domain(name)
        if domain in names:
            raise ConfigError(
                f"{named(setting)}: {names[domain]!r} and {name!r} are both of the domain "
                f"{domain!r}, whose {what} are counted together: give one line"
            )
        names[domain] = name


@dataclass(frozen=True)
class ReadingLimits:
    """How much of a page is read: characters of HTML, links, and characters of a link text.

    With `obey`, also only what the page permits.
    """

    html: int = 500_000
    links: int = 1_000
    anchor: int = 500  # most characters kept of a link text
    obey: bool = setting(
        flag,
        True,
        "obey noindex and nofollow of meta robots, X-Robots-Tag and rel; 0: ignore them",
        name="obey_nofollow",
    )
    documents: bool = setting(
        flag, True, "read PDFs like pages: text, title and links; 0: count them as `not_html`"
    )
