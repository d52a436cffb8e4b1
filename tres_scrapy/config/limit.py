"""What bounds a crawl, whatever the web offers."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import whole


@dataclass(frozen=True)
class FrontierLimits:
    """The samples that wait at most, those of one domain, and the failures that end a domain.

    By domain and not by host, for a trap has as many hosts as it likes.
    """

    pending: int = setting(
        whole(1), 10_000_000, "links that wait in the frontier at most", name="max_frontier"
    )
    pending_per_domain: int = setting(
        whole(1, 10**9),
        1_000_000,
        "those of one domain at most",
        name="max_pending_per_domain",
    )
    failures: int = setting(
        whole(1), 20, "failures in a row that end a domain", name="max_failures"
    )


@dataclass(frozen=True)
class ReadingLimits:
    """How much of a page is read: characters of HTML, links, and characters of the text of each."""

    html: int = setting(whole(1), 500_000, "characters of a page that are read", name="max_html")
    links: int = setting(whole(1), 1_000, "links read from one page", name="max_links")
    anchor: int = setting(whole(1), 500, "characters kept of the text of a link", name="max_anchor")
