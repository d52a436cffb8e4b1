"""Limits that bound the memory and time of a crawl on any web."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import ConfigError, setting
from tres_scrapy.config.parser import budgets, flag, whole
from tres_scrapy.config.typed import named
from tres_scrapy.url.domain import is_public_suffix, registrable_domain


@dataclass(frozen=True)
class FrontierLimits:
    """The most links that may wait, in all and per domain, and what a domain is and what ends it.

    Limits are per domain, not per host: a crawler trap can create any number of hosts.
    """

    pending: int = setting(
        whole(1), 10_000_000, "most links that wait in the frontier", name="max_frontier"
    )
    pending_per_domain: int = setting(
        whole(1, 10**9),
        1_000_000,
        "most links of one domain that wait in the frontier",
        name="max_pending_per_domain",
    )
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
    psl_private: bool = setting(
        flag,
        True,
        "count each site of a platform (me.github.io, me.blogspot.com) as a domain; 0: only what "
        "registrars sell",
    )

    def __post_init__(self) -> None:
        """Raise ConfigError if a budget is of a public suffix or of the domain of another."""
        names: dict[str, str] = {}
        for name, _ in self.budgets:
            if is_public_suffix(name, private=self.psl_private):
                raise ConfigError(
                    f"{named('TRES_DOMAIN_BUDGETS')}: {name!r} is not one domain: pages are "
                    "counted by domains such as example.org"
                )
            domain = registrable_domain(name, private=self.psl_private)
            if domain in names:
                raise ConfigError(
                    f"{named('TRES_DOMAIN_BUDGETS')}: {names[domain]!r} and {name!r} are both of "
                    f"the domain {domain!r}, whose pages are counted together: give one line"
                )
            names[domain] = name


@dataclass(frozen=True)
class ReadingLimits:
    """How much of a page is read: characters of HTML, links, and characters of a link text.

    With `obey`, also only what the page permits.
    """

    html: int = setting(
        whole(1), 500_000, "most characters of HTML read from one page", name="max_html"
    )
    links: int = setting(whole(1), 1_000, "most links read from one page", name="max_links")
    anchor: int = setting(whole(1), 500, "most characters kept of a link text", name="max_anchor")
    obey: bool = setting(
        flag,
        True,
        "obey noindex and nofollow of meta robots, X-Robots-Tag and rel; 0: ignore them",
        name="obey_nofollow",
    )
    documents: bool = setting(
        flag, True, "read PDFs like pages: text, title and links; 0: count them as `not_html`"
    )
