"""A web whose pages change, vanish and come back, some with false headers, on a fast clock."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from email.utils import formatdate, parsedate_to_datetime
from html import escape
from time import time
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np

from tres_scrapy.lab.webs.change import Changes
from tres_scrapy.lab.webs.noise import Hash, below, mix, unit
from tres_scrapy.lab.webs.search import SEARCH
from tres_scrapy.lab.webs.shelf import SECTION_PAGES, VALIDATORS, Shelf
from tres_scrapy.lab.webs.vocabulary import Vocabulary
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer, unknown_host

DAY = 86_400.0
ONE: Hash = np.zeros(1, np.uint64)
SENTENCE = 12  # words
FEWEST, MOST = 8, 30  # sentences of a page
LEAST_CHANGE, LARGEST_CHANGE = 0.4, 1.0  # share of the sentences that a change replaces
ERROR_SHARE = 0.01  # of fetches, answered with 500 or 503
COUNTER_SHARE = 0.2  # of sites, with a counter inside the main text of their pages
LATEST = 4  # articles on an index
ARTICLE = re.compile(r"/new-(\d{1,9})-(\d{1,9})\.html")


class ChangingWeb:
    """Serves pages by the clock: days start at `epoch` and last `day` seconds.

    Navigation, adverts, tokens and counters differ at every fetch, whether the page has changed or
    not. The same seed and epoch give the same history. With a `tick`, each request moves the clock
    by that many seconds, however busy the machine is. `labels` calls all pages relevant.
    """

    search, https = SEARCH, False
    labelled = False
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        count: int = 2_000,
        *,
        seed: int = 0,
        day: float = DAY,
        epoch: float | None = None,
        tick: float = 0.0,
        clock: Callable[[], float] = time,
    ) -> None:
        self.name, self.day, self._clock = f"changing-{seed}", day, clock
        self.epoch = clock() if epoch is None else epoch
        self._tick, self._ticks = tick, 0
        self.key = int(mix(seed, 90)[0] >> np.uint64(1))
        self.vocabulary = Vocabulary()
        self.shelf = Shelf(self.key, count, self.vocabulary)
        self.changes = Changes(self.key, self.shelf.rates)
        self.seeds: tuple[str, ...] = tuple(self.shelf.urls[:1])
        self._fetches: Counter[str] = Counter()

    def answer(self, url: str) -> Answer:
        """Return the answer to an unconditional request."""
        return self.respond(url, {})

    def respond(self, url: str, fields: Mapping[str, str]) -> Answer:
        """Return the answer to a request with these header fields, names in lower case."""
        now = (self._time() - self.epoch) / self.day
        self._fetches[url] += 1
        self._ticks += url in self.shelf.pages
        parts = urlsplit(url)
        if (parts.hostname or "") not in self.shelf.names:
            return unknown_host(parts.netloc)
        if parts.path == "/robots.txt":
            return Answer(200, b"User-agent: *\nDisallow: /private/\n", TEXT, "robots")
        drawn = mix(self.key, 91, crc32(url.encode()), self._fetches[url])
        noise = int(drawn[0] >> np.uint64(2))
        page = self.shelf.pages.get(url)
        if page is None:
            return self._article(parts.path, now, noise)
        if unit(drawn)[0] < ERROR_SHARE:
            status = 500 if noise % 2 else 503
            return Answer(status, b"try again later\n", TEXT, "error", facts={"day": now})
        if not self.changes.is_there(page, now):
            status = int(self.changes.status[page])
            return Answer(status, b"no such page\n", TEXT, "missing", facts={"day": now})
        return self._page(page, now, fields, noise)

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL is a page."""
        return [url in self.shelf.pages for url in urls]

    def html(self, page: int, version: int, noise: int) -> str:
        """Return a page after `version` changes; `noise` differs at each fetch."""
        section, host = int(self.shelf.section[page]), int(self.shelf.host[page])
        if self.shelf.index[page]:
            title, body = "Latest", self._index(section, version)
        else:
            title, body = self._title(page), self._text(page, version)
        near = [section * SECTION_PAGES + place for place in range(1, SECTION_PAGES)]
        links = [url for each in near if (url := self._known(each))]
        return self._frame(host, title, body, links, noise)

    def _time(self) -> float:
        return self.epoch + self._tick * self._ticks if self._tick else self._clock()

    def _page(self, page: int, now: float, fields: Mapping[str, str], noise: int) -> Answer:
        times = self.changes.times(page, now)
        version, changed = len(times), self.epoch + self.day * (times[-1] if times else 0.0)
        kind = VALIDATORS[self.shelf.validator[self.shelf.host[page]]]
        headers = self._validators(kind, page, version, changed, noise)
        facts = {"day": now, "version": version, "changed": times[-1] if times else 0.0}
        if kind not in {"none", "deaf"} and _unchanged(dict(headers), fields):
            return Answer(304, b"", headers, "unchanged", facts=facts)
        body = self.html(page, version, noise).encode()
        return Answer(200, body, (*HTML, *headers), "page", True, kind, facts=facts)

    def _validators(
        self, kind: str, page: int, version: int, changed: float, noise: int
    ) -> tuple[tuple[str, str], ...]:
        tag = {"restless": f"{page}-{noise:x}", "lying": f"{page}"}.get(kind, f"{page}-{version}")
        headers = []
        if kind in {"honest", "etag", "restless", "deaf", "lying"}:
            headers.append(("ETag", f'"{tag}"'))
        # A date has whole seconds: in the second of a change it could be wrong, so it is left out.
        if kind in {"honest", "date"} and self._time() - changed > 1:
            headers.append(("Last-Modified", formatdate(changed, usegmt=True)))
        return tuple(headers)

    def _article(self, path: str, now: float, noise: int) -> Answer:
        """Return an article from an index; articles never change."""
        match = ARTICLE.search(path)
        section, number = (int(match[1]), int(match[2])) if match else (0, 0)
        index = section * SECTION_PAGES
        known = match is not None and index < len(self.shelf.urls)
        if not known or number >= len(self.changes.times(index, now)):
            return Answer(404, b"no such page\n", TEXT, "missing")
        own = len(self.shelf.urls) * (1 + number) + section
        host = int(self.shelf.host[index])
        html = self._frame(host, self._title(own), self._text(own, 0), [], noise)
        return Answer(200, html.encode(), HTML, "page", True)

    def _known(self, page: int) -> str:
        return self.shelf.urls[page] if page < len(self.shelf.urls) else ""

    def _topic(self, page: int) -> int:
        """Return the topic of a page or article: article numbers follow the page numbers."""
        count = len(self.shelf.urls)
        known = page if page < count else page % count * SECTION_PAGES
        return int(self.shelf.topic[self.shelf.host[known]])

    def _title(self, page: int) -> str:
        return self._lines(page, 92, 5)[0].title()

    def _text(self, page: int, version: int) -> str:
        """Return the paragraphs of a page, each sentence as its last change left it."""
        count = FEWEST + int(below(mix(self.key, 93, page), MOST - FEWEST)[0])
        last = np.zeros(count, np.int64)
        waiting = np.ones(count, bool)
        for change in range(version, 0, -1):
            size = unit(mix(self.key, 95, page, change))[0]
            share = LEAST_CHANGE + (LARGEST_CHANGE - LEAST_CHANGE) * size
            drawn = unit(mix(self.key, 96, page, change, np.arange(count)))
            replaced = waiting & (drawn < share)
            last[replaced] = change
            waiting &= ~replaced
            if not waiting.any():
                break
        lines = self._lines(page, 94, SENTENCE, mix(last, np.arange(count)))
        sentences = [line[0].upper() + line[1:] + "." for line in lines]
        return "".join(f"<p>{' '.join(sentences[i : i + 5])}</p>" for i in range(0, count, 5))

    def _index(self, section: int, version: int) -> str:
        """Return teasers of the latest articles; each change adds an article."""
        rows = []
        for number in range(version - 1, max(-1, version - 1 - LATEST), -1):
            own = len(self.shelf.urls) * (1 + number) + section
            url, title = self.shelf.article(section, number), escape(self._title(own))
            teaser = self._lines(own, 97, 3 * SENTENCE)[0]
            rows.append(f'<p><a href="{url}">{title}</a> {teaser}.</p>')
        about = self._lines(section * SECTION_PAGES, 98, 2 * SENTENCE)[0]
        return f"<p>{about}.</p>{''.join(rows)}"

    def _lines(self, page: int, lane: int, words: int, parts: Hash = ONE) -> list[str]:
        """Return a line of `words` words on the page's topic for each of the parts."""
        noise = mix(self.key, lane, page, parts[:, None], np.arange(words))
        plain = unit(mix(noise, 1)) < 0.6
        rows = np.where(plain, self.vocabulary.background, self._topic(page))
        drawn = self.vocabulary.words[self.vocabulary.draw(rows, noise)]
        return [" ".join(line) for line in drawn.tolist()]

    def _frame(self, host: int, title: str, body: str, links: list[str], noise: int) -> str:
        """Return the page with menus, adverts, tokens and counters that differ at every fetch."""
        token, visits = f"{noise:016x}", f"{noise % 99_991:,}"
        any_page = noise % len(self.shelf.urls)
        words = self._lines(any_page, 100, 6)[0].split()
        menu = "".join(f'<a href="/private/{i}">{word}</a> ' for i, word in enumerate(words))
        advert = self._lines(any_page, 101, 9)[0]
        near = "".join(f'<li><a href="{escape(url)}?utm_id={token}">more</a></li>' for url in links)
        counter = unit(mix(self.key, 102, host))[0] < COUNTER_SHARE
        count = f"<p>Read {visits} times so far today.</p>" if counter else ""
        return (
            f'<!DOCTYPE html><html><head><title>{escape(title)}</title><meta name="csrf" '
            f'content="{token}"></head><body data-build="{token}"><nav>{menu}</nav>'
            f'<div class="menu"><ul><li>{menu}</li></ul></div><main><h1>{escape(title)}</h1>'
            f'{body}{count}<form><input type="hidden" name="token" value="{token}"></form></main>'
            f'<div class="advert banner"><p>{advert} <a href="http://ads.test/{token[-1]}">buy</a>'
            f"</p></div><aside>{advert}</aside><ul>{near}</ul>"
            f"<footer>{visits} visitors, made in {noise % 997} ms</footer><!-- {token} -->"
            "</body></html>"
        )


def _unchanged(headers: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    """Return whether the client's copy is still valid by the server's headers (RFC 9110)."""
    if wanted := fields.get("if-none-match"):
        return headers.get("ETag") in {tag.strip() for tag in wanted.split(",")}
    since, modified = fields.get("if-modified-since"), headers.get("Last-Modified")
    if since is None or modified is None:
        return False
    try:
        return parsedate_to_datetime(modified) <= parsedate_to_datetime(since)
    except ValueError:
        return False
