"""Resolves URLs of the synthetic web to pages: aliases, sessions and redirects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.lab.webs.address import Addresses
from tres_scrapy.lab.webs.markup import SESSION, Documents
from tres_scrapy.lab.webs.noise import below, mix, unit
from tres_scrapy.lab.webs.trait import COPY, PAGE, REDIRECT

ABROAD = 0.3  # share of redirects that lead to another site
HOPS = 10  # most redirects followed to find a label: some form a loop
DETOUR = re.compile(r"/go/(\d)/(.*)")
COPIES = re.compile(r"[?&](?:ref=home|print=1)$")
SESSIONS = re.compile(r"[?&]sid=([0-9a-f]{1,16})$")


class Routes:
    """Follows URLs to their pages and reads the labels of the pages."""

    def __init__(self, addresses: Addresses, documents: Documents) -> None:
        self.addresses, self.documents = addresses, documents
        self.pages, self.sites, self.key = addresses.pages, addresses.sites, addresses.pages.key

    def split(self, url: str) -> tuple[int | None, str]:
        """Return the site of a URL, None for an unknown host, and its path and query."""
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return self.addresses.site(parts.hostname or ""), target

    def plain(self, site: int, target: str) -> tuple[str, str]:
        """Return the target without alias and session, and the session ("" if it has none)."""
        session = SESSIONS.search(target)
        if session and self.documents.trap(site) == SESSION:
            return SESSIONS.sub("", target), session[1]
        return COPIES.sub("", target), ""

    def redirect(self, site: int, number: int) -> str:
        """Return the target of a redirect: on its site, or on another site of the same topic."""
        noise = mix(self.key, 60, site, number, np.arange(3))
        where = np.array([site])
        if unit(noise)[0] < ABROAD:
            members = self.sites.members[self.sites.main[site]]
            where = members[below(noise[1:2], len(members))]
        section = self.sites.main_section(where, below(noise[1:2], 1 << 20))
        page = self.pages.in_section(where, section, below(noise[2:], 1 << 30))
        return self.addresses.urls(self.pages.traits(where, page))[0]

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL, after redirects, is a relevant page."""
        waiting, relevant = dict(enumerate(urls)), set[int]()
        for _ in range(HOPS + 1):
            if not waiting:
                break
            found, waiting = self._fetch(waiting)
            relevant |= found
        return [row in relevant for row in range(len(urls))]

    def _fetch(self, urls: Mapping[int, str]) -> tuple[set[int], dict[int, str]]:
        """Return which URLs are relevant pages, and the targets of those that are redirects."""
        places = {row: place for row, url in urls.items() if (place := self._place(url))}
        found, pages = self.addresses.find([(site, target) for site, target, _ in places.values()])
        rows = np.array(list(places), np.int64)[found]
        trapped = np.array([session for _, _, session in places.values()], np.bool_)[found]
        shown = (pages.fate == PAGE) | (pages.fate == COPY)
        relevant = rows[shown & self.pages.wanted(pages) & ~trapped]
        moved = pages.fate == REDIRECT
        columns = (rows[moved], pages.site[moved], pages.number[moved])
        origins = zip(*(column.tolist() for column in columns), strict=True)
        return set(relevant.tolist()), {row: self.redirect(*origin) for row, *origin in origins}

    def _place(self, url: str) -> tuple[int, str, bool] | None:
        """Return a URL's site, plain path and query after a detour, and if it has a session."""
        site, target = self.split(url)
        if site is None:
            return None
        while detour := DETOUR.fullmatch(target):
            target = f"/{detour[2]}"
        target, session = self.plain(site, target)
        return site, target, bool(session)
