"""A web whose pages change, vanish and come back, some with false headers, on a fast clock."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from email.utils import formatdate, parsedate_to_datetime
from html import escape
from time import time
from urllib.parse import urlsplit
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.noise import Hash, Ints, below, mix, unit
from tres_scrapy.lab.webs.vocabulary import Vocabulary
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer, unknown_host
from tres_scrapy.page.text import read_page

DAY = 86_400.0
PAGES = 200  # of the web that a crawl starts by its name
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
    not. The same seed and epoch give the same history. `labels` calls all pages relevant.
    """

    https = False
    labelled = False
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        count: int = PAGES,
        *,
        seed: int = 0,
        day: float = DAY,
        epoch: float | None = None,
        clock: Callable[[], float] = time,
    ) -> None:
        self.name, self.day, self._clock = f"changing-{seed}", day, clock
        self.epoch = clock() if epoch is None else epoch
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
        now = (self._clock() - self.epoch) / self.day
        self._fetches[url] += 1
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
        if kind in {"honest", "date"} and self._clock() - changed > 1:
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


BLOCK = 64  # changes drawn at a time
VANISHING, RETURNING = 0.06, 0.5  # shares of pages that vanish, of vanished pages that come back
LIFE = 10.0  # days in which a page vanishes; it returns within as many
GONE, MISSING = 410, 404


class Changes:
    """The true history of n pages: page i changes by a Poisson process of rate `rates[i]`."""

    def __init__(self, key: int, rates: NDArray[np.float64]) -> None:
        self.key, self.rates = key, rates
        self._times: dict[int, list[float]] = {}
        pages: Ints = np.arange(len(rates))
        fate, first, second, code = (unit(mix(key, 71, pages, lane)) for lane in range(4))
        vanishes = fate < VANISHING
        returns = fate < VANISHING * RETURNING
        self.vanishes = np.where(vanishes, first * LIFE, np.inf)
        self.returns = np.where(returns, self.vanishes + 0.1 + second * LIFE, np.inf)
        self.status: Ints = np.where(code < 0.5, MISSING, GONE)

    def times(self, page: int, day: float) -> list[float]:
        """Return the times of the changes of a page up to a day, in order."""
        known = self._times.setdefault(page, [])
        while not known or known[-1] <= day:
            noise = unit(mix(self.key, 70, page, len(known) + np.arange(BLOCK)))
            gaps = -np.log1p(-noise) / self.rates[page]
            known.extend(((known[-1] if known else 0.0) + np.cumsum(gaps)).tolist())
        return known[: bisect_right(known, day)]

    def is_there(self, page: int, day: float) -> bool:
        """Return whether a page exists on a day."""
        return not self.vanishes[page] <= day < self.returns[page]


SECTION_PAGES = 10  # the first page is the section's index
SECTIONS = ("forum", "news", "shop", "blog", "docs", "archive")
KIND_SHARES = np.cumsum([0.1, 0.15, 0.2, 0.2, 0.2])
DAILY = np.array([20.0, 4.0, 0.5, 0.15, 0.03, 0.004])  # changes a day, by kind of section
SPREAD = 0.7  # standard deviation of the logarithm of a section's rate
EVEN = 3.0  # shape of the gamma distribution of rates within a section
FLAT_SHARE = 0.25  # sites whose URLs do not show the section
HOST_SECTIONS = 5
VALIDATORS = ("honest", "etag", "date", "none", "restless", "deaf", "lying")
VALIDATOR_SHARES = np.cumsum([0.3, 0.15, 0.15, 0.15, 0.1, 0.1])


class Shelf:
    """The host, section, URL and change rate (a day) of each of n pages, [n]."""

    def __init__(self, key: int, count: int, vocabulary: Vocabulary) -> None:
        pages: Ints = np.arange(count)
        self.section: Ints = pages // SECTION_PAGES
        self.host: Ints = self.section // HOST_SECTIONS
        self.index = pages % SECTION_PAGES == 0
        sections: Ints = np.arange(int(self.section[-1]) + 1)
        hosts: Ints = np.arange(int(self.host[-1]) + 1)
        drawn = unit(mix(key, 80, sections))
        self.kind: Ints = np.searchsorted(KIND_SHARES, drawn, side="right")
        self.flat = unit(mix(key, 81, hosts)) < FLAT_SHARE
        share = unit(mix(key, 82, hosts))
        self.validator: Ints = np.searchsorted(VALIDATOR_SHARES, share, side="right")
        random = np.random.default_rng(int(mix(key, 83)[0]))
        rates = DAILY[self.kind] * np.exp(random.normal(0, SPREAD, len(sections)))
        self.rates = rates[self.section] * random.gamma(EVEN, 1 / EVEN, count)
        self.topic: Ints = below(mix(key, 84, hosts), len(vocabulary.topics))
        words = vocabulary.draw(self.topic, mix(key, 85, hosts))
        self.names = [f"{vocabulary.slugs[word]}-{host}.test" for host, word in enumerate(words)]
        self.urls = [self._url(page) for page in range(count)]
        self.pages = {url: page for page, url in enumerate(self.urls)}

    def article(self, section: int, number: int) -> str:
        """Return the URL of an article of a section, numbered in order of publication."""
        host = section // HOST_SECTIONS
        return f"http://{self.names[host]}/{self.folder(section)}/new-{section}-{number}.html"

    def folder(self, section: int) -> str:
        """Return the folder of a section; all sections of a flat site share one."""
        if self.flat[section // HOST_SECTIONS]:
            return "p"
        return f"{SECTIONS[self.kind[section]]}{section % HOST_SECTIONS}"

    def _url(self, page: int) -> str:
        section = page // SECTION_PAGES
        base = f"http://{self.names[section // HOST_SECTIONS]}/{self.folder(section)}"
        if self.index[page] and not self.flat[section // HOST_SECTIONS]:
            return f"{base}/"
        return f"{base}/{page}.html"


def quick_days(topic: str, *, seed: int = 0) -> ChangingWeb:
    """Return the web whose days last six seconds, for `-a web=webs.changing:quick_days`."""
    return ChangingWeb(seed=seed, day=6.0)


def initial(web: ChangingWeb) -> Iterator[dict[str, object]]:
    """Yield the pages as a crawl would leave them at the start of the first day."""
    for number, url in enumerate(web.shelf.urls):
        page = read_page(web.html(number, 0, number), url, language=False)
        yield {"url": url, "title": page.title, "text": page.text}


if __name__ == "__main__":
    for row in initial(quick_days("")):
        print(json.dumps(row, ensure_ascii=False))
