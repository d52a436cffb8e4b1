"""A web of millions of pages on 262,144 sites, generated lazily and calibrated to P Table 3."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.lab.webs.address import Addresses
from tres_scrapy.lab.webs.markup import CALENDAR, SESSION, Documents
from tres_scrapy.lab.webs.noise import below, mix, unit
from tres_scrapy.lab.webs.prose import Prose
from tres_scrapy.lab.webs.site import KINDS, PURE, SITES, Sites, profile_of
from tres_scrapy.lab.webs.synthetic_page import (
    COPY,
    FILE,
    MISSING,
    PAGE,
    REDIRECT,
    LinkChooser,
    SyntheticPages,
    Traits,
)
from tres_scrapy.lab.webs.vocabulary import Vocabulary
from tres_scrapy.lab.webs.web import TEXT, Answer, unknown_host

SOFT_SHARE = 0.15  # share of sites that answer with status 200 for a missing page
SLOW_SHARE, SHORTEST_WAIT, LONGEST_WAIT = 0.03, 0.5, 3.0
ROBOTS_SHARE, PATIENT_SHARE = 0.15, 0.03  # sites with rules for robots, with a Crawl-delay
MONTHS = re.compile(r"/calendar/(\d{1,6})/(\d{1,2})(?:/\d{1,2})?")
FILES = {
    "pdf": ("application/pdf", b"%PDF-1.4\n%%EOF\n"),
    "jpg": ("image/jpeg", b"\xff\xd8\xff\xd9"),
}
ABROAD = 0.3  # share of redirects that lead to another site
HOPS = 10  # most redirects followed to find a label: some form a loop
DETOUR = re.compile(r"/go/(\d)/(.*)")
COPIES = re.compile(r"[?&](?:ref=home|print=1)$")
SESSIONS = re.compile(r"[?&]sid=([0-9a-f]{1,16})$")


class SyntheticWeb:
    """The synthetic web of a topic: the same seed always gives the same answers.

    Of several topics, joined by "+", the web is that of the first; a page on any is relevant. With
    `slow=False` no host delays its answers. Raise ValueError if a topic has no such web.
    """

    https = False
    labelled = True
    notes: tuple[str, ...] = ()

    def __init__(self, topic: str = "food", *, seed: int = 0, slow: bool = True) -> None:
        (profile, *_), vocabulary = [profile_of(name) for name in topic.split("+")], Vocabulary()
        self.name, self.slow = f"synthetic-{topic}-{seed}", slow
        index, *others = map(vocabulary.topics.index, topic.split("+"))
        self.key = int(mix(seed, index)[0] >> np.uint64(1))
        self.sites = Sites(self.key, index, len(vocabulary.topics), profile)
        self.pages = SyntheticPages(self.sites, vocabulary, profile, others)
        self.addresses = Addresses(self.pages)
        links, prose = LinkChooser(self.pages, len(vocabulary.topics)), Prose(self.pages)
        self.documents = Documents(self.pages, self.addresses, links, prose)
        self.seeds: tuple[str, ...] = (self._start(),)

    def answer(self, url: str) -> Answer:
        """Return the answer to a URL."""
        site, target = self._split(url)
        if site is None:
            return unknown_host(urlsplit(url).netloc)
        found = self._answer(site, target)
        delay = self._delay(site) if self.slow else 0.0
        return Answer(
            found.status, found.body, found.headers, found.kind, found.relevant,
            KINDS[self.sites.kind[site]], delay,
        )  # fmt: skip

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL, after redirects, is a relevant page."""
        waiting, relevant = dict(enumerate(urls)), set[int]()
        for _ in range(HOPS + 1):
            if not waiting:
                break
            found, waiting = self._fetch(waiting)
            relevant |= found
        return [row in relevant for row in range(len(urls))]

    def _answer(self, site: int, target: str) -> Answer:
        if target == "/robots.txt":
            return self._robots(site)
        if match := DETOUR.fullmatch(target):
            return self._detour(site, int(match[1]), match[2])
        if (match := MONTHS.fullmatch(target)) and self.documents.trap(site) == CALENDAR:
            html = self.documents.calendar(site, int(match[1]), int(match[2]))
            return self._html(site, html, "trap", False)
        plain, session = self._plain(site, target)
        found, page = self.addresses.find([(site, plain)])
        return self._page(page, session) if len(found) else self._missing(site)

    def _page(self, page: Traits, session: str) -> Answer:
        site, number, fate = int(page.site[0]), int(page.number[0]), int(page.fate[0])
        if fate in (PAGE, COPY):
            own = self.documents.session(site, number, int(session or "0", 16))
            html = self.documents.page(page, own)
            return self._html(
                site, html, "trap" if session else "page", bool(self.pages.wanted(page)[0])
            )
        if fate == REDIRECT:
            return _moved(self._redirect(site, number))
        if fate == FILE:
            return self._file(page)
        return self._missing(site) if fate == MISSING else self._error(site, number)

    def _html(self, site: int, html: str, kind: str, relevant: bool, status: int = 200) -> Answer:
        body, headers = self.documents.encode(site, html)
        return Answer(status, body, headers, kind, relevant)

    def _detour(self, site: int, steps: int, target: str) -> Answer:
        base = f"http://{self.addresses.host(site)}/"
        return _moved(f"{base}go/{steps - 1}/{target}" if steps > 1 else base + target)

    def _file(self, page: Traits) -> Answer:
        kind, body = FILES[self.addresses.urls(page)[0].rpartition(".")[2]]
        return Answer(200, body, (("Content-Type", kind),), "other")

    def _missing(self, site: int) -> Answer:
        html = "<html><head><title>Not found</title></head><body><h1>Page not found</h1>"
        html += '<p>The page you asked for was not found.</p><a href="/">Home</a></body></html>'
        soft = bool(self.sites.has(np.array([site]), 0, SOFT_SHARE)[0])
        return self._html(site, html, "soft404" if soft else "missing", False, 200 if soft else 404)

    def _error(self, site: int, number: int) -> Answer:
        status = 503 if mix(self.key, 61, site, number)[0] % np.uint64(2) else 500
        return Answer(status, b"the server failed\n", TEXT, "error")

    def _robots(self, site: int) -> Answer:
        rules = ["User-agent: *", "Disallow: /login"]
        if self.sites.has(np.array([site]), 1, ROBOTS_SHARE)[0]:
            rules.append(f"Disallow: /{self.addresses.folder(site, 0)}/")
        if self.sites.has(np.array([site]), 2, PATIENT_SHARE)[0]:
            rules.append(f"Crawl-delay: {1 + site % 2}")
        return Answer(200, "\n".join([*rules, ""]).encode(), TEXT, "robots")

    def _delay(self, site: int) -> float:
        share = unit(mix(self.key, 62, site, np.arange(2)))
        wait = SHORTEST_WAIT + (LONGEST_WAIT - SHORTEST_WAIT) * float(share[1])
        return round(wait, 2) if share[0] < SLOW_SHARE else 0.0

    def _split(self, url: str) -> tuple[int | None, str]:
        """Return the site of a URL, None for an unknown host, and its path and query."""
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return self.addresses.site(parts.hostname or ""), target

    def _plain(self, site: int, target: str) -> tuple[str, str]:
        """Return the target without alias and session, and the session ("" if it has none)."""
        session = SESSIONS.search(target)
        if session and self.documents.trap(site) == SESSION:
            return SESSIONS.sub("", target), session[1]
        return COPIES.sub("", target), ""

    def _redirect(self, site: int, number: int) -> str:
        """Return the target of a redirect: on its site, or on another site of the same topic."""
        noise = mix(self.key, 60, site, number, np.arange(3))
        where = np.array([site])
        if unit(noise)[0] < ABROAD:
            members = self.sites.members[self.sites.main[site]]
            where = members[below(noise[1:2], len(members))]
        section = self.sites.main_section(where, below(noise[1:2], 1 << 20))
        page = self.pages.in_section(where, section, below(noise[2:], 1 << 30))
        return self.addresses.urls(self.pages.traits(where, page))[0]

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
        return set(relevant.tolist()), {row: self._redirect(*origin) for row, *origin in origins}

    def _place(self, url: str) -> tuple[int, str, bool] | None:
        """Return a URL's site, plain path and query after a detour, and if it has a session."""
        site, target = self._split(url)
        if site is None:
            return None
        while detour := DETOUR.fullmatch(target):
            target = f"/{detour[2]}"
        target, session = self._plain(site, target)
        return site, target, bool(session)

    def _start(self) -> str:
        """Return a relevant home page of a pure site of medium size."""
        fit = (self.sites.kind == PURE) & (self.sites.size > 40) & (self.sites.size < 400)
        sites = np.flatnonzero(fit & (np.arange(SITES) > 0))
        homes = self.pages.traits(sites, np.zeros(len(sites), np.int64))
        relevant = sites[homes.relevant]
        site = int(relevant[below(mix(self.key, 63), len(relevant))[0]])
        return f"http://{self.addresses.host(site)}/"


def _moved(url: str) -> Answer:
    return Answer(302, b"", (("Location", url), *TEXT), "redirect")
