"""Deep-web sites: 10,000 records each, behind search boxes of five kinds."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import Final, NamedTuple
from urllib.parse import parse_qs, quote_plus, urlsplit

import numpy as np

from tres_scrapy.lab.webs.noise import Ints, below, generator, mix, unit
from tres_scrapy.lab.webs.vocabulary import STOP_WORDS, tables
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer, unknown_host

PER_PAGE, SNIPPET = 10, 30  # records on a page of results, words of each
GUIDES, SHOWN = 40, 3  # pages without records, and links to some of them on every page
RECORD = re.compile(r"/record/(\d{1,5})(?:-[a-z0-9-]*)?")
STATIC: Final = frozenset({"/about", "/contact", "/browse"})
GUIDE = re.compile(r"/guide/(\d{1,2})")
XML = (("Content-Type", "application/opensearchdescription+xml; charset=utf-8"),)
OPENSEARCH: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>'
    '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
    "<ShortName>{host}</ShortName>"
    '<Url type="application/rss+xml" template="http://{host}/feed?q={{searchTerms}}"/>'
    '<Url type="text/html" template="http://{host}{action}?q={{searchTerms}}&amp;p={{startPage?}}"/>'
    "</OpenSearchDescription>"
)


class SearchSite(NamedTuple):
    """How a site is searched: by `form` (get or post), or as its home page describes."""

    action: str
    form: str = ""
    described: str = ""  # json-ld or opensearch
    open: bool = True  # whether robots.txt allows the search
    page: str = "page"  # the parameter that selects the page of results
    step: int = 1  # its increase from page to page


SITES: Final = {
    "library.test": SearchSite("/find", form="get"),
    "archive.test": SearchSite("/s", described="json-ld", page="start", step=PER_PAGE),
    "museum.test": SearchSite("/look", described="opensearch", page="p"),
    "registry.test": SearchSite("/query", form="post"),
    "vault.test": SearchSite("/search", form="get", open=False),
}


class DeepWeb:
    """Five sites on a topic: the same seed always gives the same records."""

    https = False
    labelled = True
    notes: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ("http://library.test/",)

    def __init__(self, topic: str = "food", *, seed: int = 0) -> None:
        self.name = f"deep-{topic}-{seed}"
        self._topic, self._seed = topic, seed
        self._holdings: dict[str, Holding] = {}

    def answer(self, url: str) -> Answer:
        """Return the answer to a URL."""
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path or "/"
        site = SITES.get(host)
        if site is None:
            return unknown_host(parts.netloc)
        if path == site.action and site.form != "post":
            return self._results(host, site, parts.query)
        return self._page(host, site, path)

    def submit(self, url: str, body: str) -> Answer:
        """Return the answer to a posted form."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        site = SITES.get(host)
        if site is None or site.form != "post" or parts.path != site.action:
            return Answer(405, b"nothing is posted here\n", TEXT, "error")
        return self._results(host, site, body)

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL is a record on the topic."""
        return [self.answer(url).relevant for url in urls]

    def holding(self, host: str) -> Holding:
        """Return the records of a site."""
        if host not in self._holdings:
            key = int(mix(self._seed, list(SITES).index(host), 80)[0] >> np.uint64(1))
            self._holdings[host] = Holding(key, self._topic)
        return self._holdings[host]

    def _page(self, host: str, site: SearchSite, path: str) -> Answer:
        if path == "/":
            return _html(host, site, "Home", f"<h1>{host}</h1><p>{RECORDS:,} records.</p>", "home")
        if path == "/robots.txt":
            rules = f"User-agent: *\nDisallow: {'/admin' if site.open else site.action}\n"
            return Answer(200, rules.encode(), TEXT, "robots")
        if path == "/opensearch.xml" and site.described == "opensearch":
            xml = OPENSEARCH.format(host=host, action=site.action)
            return Answer(200, xml.encode(), XML, "other")
        if (match := RECORD.fullmatch(path)) and int(match[1]) < RECORDS:
            return self._record(host, site, int(match[1]))
        if path in STATIC or (GUIDE.fullmatch(path) and int(path[7:]) < GUIDES):
            title = path[1:].replace("/", " ").title()
            text = f"<h1>{title}</h1><p>How to use this site: {title.lower()}.</p>"
            return _html(host, site, title, text, path)
        return Answer(404, b"no such page\n", TEXT, "missing")

    def _record(self, host: str, site: SearchSite, number: int) -> Answer:
        holding = self.holding(host)
        record, words = holding.record(number), holding.body(number)
        text = ". ".join(" ".join(words[i : i + 12]).capitalize() for i in range(0, len(words), 12))
        main = f"<h1>{escape(record.title)}</h1><p class=by>{record.author}, {record.publisher}</p>"
        return _html(
            host, site, record.title, f"{main}<p>{escape(text)}.</p>", str(number),
            relevant=record.relevant, facts={"record": number},
        )  # fmt: skip

    def _results(self, host: str, site: SearchSite, query: str) -> Answer:
        asked = parse_qs(query)
        words, place = asked.get("q", [""])[0], asked.get(site.page, [""])[0]
        found = self.holding(host).search(words)
        turned = int(place) if place.isascii() and place.isdigit() and len(place) < 6 else 0
        start = turned if site.step > 1 else PER_PAGE * max(turned - 1, 0)
        shown = found[start : start + PER_PAGE]
        main = f"<h1>Results for “{escape(words)}”</h1>"
        if shown:
            rows = "".join(self._row(host, number) for number in shown)
            main += f'<p>{len(found)} found</p><ol class="hits">{rows}</ol>'
            main += _paging(site, words, start, len(found))
        else:
            main += '<p class="none">Your search did not match any record. Try other words.</p>'
        if site.form != "post":
            again = f"{site.action}?q={quote_plus(words)}"
            main += f'<p class="sort"><a href="{again}&amp;sort=title">By title</a></p>'
        return _html(
            host, site, "Search", main, words, answer="search",
            facts={"query": words, "returned": shown},
        )  # fmt: skip

    def _row(self, host: str, number: int) -> str:
        holding = self.holding(host)
        record = holding.record(number)
        slug = record.title.lower().replace(" ", "-")
        slug = re.sub("[^a-z0-9-]", "", slug)
        snippet = " ".join(holding.body(number)[:SNIPPET])
        author = record.author.lower().replace(" ", "-")
        return (
            f'<li class="hit"><h3><a href="/record/{number}-{slug}">{escape(record.title)}</a></h3>'
            f'<p class="by"><a href="/author/{author}">{record.author}</a>'
            f' <span class="publisher">{record.publisher}</span>'
            f' <a class="category" href="/category/{record.category}">{record.category}</a></p>'
            f'<p class="snippet">{escape(snippet)} …</p></li>'
        )


def _paging(site: SearchSite, words: str, start: int, found: int) -> str:
    """Return links to the previous and next page, as small forms on a site that uses POST."""
    steps = []
    for label, place in (("Previous", start - PER_PAGE), ("Next", start + PER_PAGE)):
        if not 0 <= place < found:
            continue
        number = place if site.step > 1 else place // PER_PAGE + 1
        if site.form == "post":
            steps.append(
                f'<form action="{site.action}" method="post"><input type="hidden" name="q" '
                f'value="{escape(words)}"><input type="hidden" name="{site.page}" '
                f'value="{number}"><button>{label}</button></form>'
            )
        else:
            url = f"{site.action}?q={quote_plus(words)}&amp;{site.page}={number}"
            steps.append(f'<a class="step" href="{url}">{label}</a>')
    return f'<div class="paging">{" ".join(steps)}</div>'


def _html(
    host: str,
    site: SearchSite,
    title: str,
    main: str,
    noise: str,
    *,
    answer: str = "page",
    relevant: bool = False,
    facts: Mapping[str, object] | None = None,
) -> Answer:
    """Return a page with a menu, a search box and links to guides that differ from page to page."""
    guides = below(mix(int.from_bytes(noise.encode()[-7:], "big"), 88, np.arange(SHOWN)), GUIDES)
    aside = "".join(f'<li><a href="/guide/{i}">Guide {i}</a></li>' for i in guides.tolist())
    menu = "".join(f'<a href="/{name}">{name.title()}</a> ' for name in ("about", "browse"))
    html = (
        f"<!DOCTYPE html><html lang=en><head><title>{escape(title)} | {host}</title>"
        f"{_described(host, site)}</head><body><nav><a href='/'>Home</a> {menu}</nav>"
        f"<header>{_form(site)}</header><main>{main}</main><aside><ul>{aside}</ul></aside>"
        "<footer><a href='/contact'>Contact</a></footer></body></html>"
    )
    return Answer(200, html.encode(), HTML, answer, relevant, "deep", facts=facts or {})


def _described(host: str, site: SearchSite) -> str:
    if site.described == "opensearch":
        kind = "application/opensearchdescription+xml"
        return f'<link rel="search" type="{kind}" href="/opensearch.xml">'
    if site.described != "json-ld":
        return ""
    action = {
        "@type": "SearchAction",
        "target": {
            "@type": "EntryPoint",
            "urlTemplate": f"http://{host}{site.action}?q={{search_term_string}}",
        },
        "query-input": "required name=search_term_string",
    }
    about = {"@context": "https://schema.org", "@type": "WebSite", "potentialAction": action}
    return f'<script type="application/ld+json">{json.dumps(about)}</script>'


def _form(site: SearchSite) -> str:
    """Return the search box, and beside it a newsletter form that is not a search box."""
    letter = (
        '<form action="/letters" method="post"><input type="email" name="email">'
        "<button>Subscribe</button></form>"
    )
    if not site.form:
        return letter
    return letter + (
        f'<form action="{site.action}" method="{site.form}" role="search">'
        '<input type="search" name="q" placeholder="Search titles">'
        '<input type="hidden" name="lang" value="en">'
        '<select name="sort"><option value="best" selected>Best</option>'
        '<option value="title">Title</option></select>'
        "<button>Search</button></form>"
    )


RECORDS, CAP = 10_000, 100  # records of a site, most results of a query
ABOUT = 0.3  # share of records on the topic of the crawl
TITLE, BODY = 6, 160  # words
GENERAL, COMMON = 0.25, 0.3  # shares of words without topic in a text, of common words in a body
OFFSET, EXPONENT = 20, 1.05  # of the Zipf-Mandelbrot law
UNTITLED = 0.3  # share of words that never occur in a title
DRAWS = 6  # attempts to find a word that may occur in a title
AUTHORS, PUBLISHERS = 2500, 200
SYLLABLES = re.findall("..", "babelocaduferogihojukalemanepoqirasotuvawexiyoza")


@dataclass(frozen=True, slots=True)
class LibraryRecord:
    """A record as its site shows it."""

    number: int
    title: str
    author: str
    publisher: str
    category: str
    relevant: bool


@cache
def _words() -> tuple[tuple[str, ...], list[list[str]]]:
    """Return the topics; and the words of each, those without topic and those of any text."""
    counts = tables()
    topics = tuple(name for name in counts if name != "background")
    background = list(counts["background"])
    return topics, [*(list(counts[name]) for name in topics), background[STOP_WORDS:], background]


class Holding:
    """The records of one site, each a function of the site's key and its number.

    Most are on the first topic of `topic`; those on any of several, joined by "+", are relevant.
    """

    def __init__(self, key: int, topic: str) -> None:
        self.key = key
        topics, words = _words()
        self.topics, self._tables = topics, [np.array(table, dtype=object) for table in words]
        wanted = [topics.index(name) for name in topic.split("+")]
        numbers, about = np.arange(RECORDS), wanted[0]
        other = (about + 1 + below(mix(key, 81, numbers), len(topics) - 1)) % len(topics)
        self.topic: Ints = np.where(unit(mix(key, 82, numbers)) < ABOUT, about, other)
        self.relevant = np.isin(self.topic, wanted)
        self.rank: Ints = np.argsort(mix(key, 83, numbers))  # orders long answers
        self.titles = [self._title(number) for number in range(RECORDS)]
        self._found: dict[str, list[int]] = {}
        place = np.argsort(self.rank)
        for number in np.argsort(place).tolist():
            for word in set(_split(self.titles[number])):
                self._found.setdefault(word, []).append(number)

    def search(self, query: str) -> list[int]:
        """Return the numbers of records whose titles contain every word: the CAP best."""
        words = _split(query)
        if not words:
            return []
        found = self._found.get(words[0], [])
        for word in words[1:]:
            others = set(self._found.get(word, []))
            found = [number for number in found if number in others]
        return found[:CAP]

    def record(self, number: int) -> LibraryRecord:
        """Return a record."""
        noise = mix(self.key, 84, number, np.arange(2))
        return LibraryRecord(
            number,
            self.titles[number],
            f"{_name(int(below(noise[:1], AUTHORS)[0]))} {_name(number % 61)}",
            f"{_name(int(below(noise[1:], PUBLISHERS)[0]) + AUTHORS)} Press",
            self.topics[int(self.topic[number])],
            bool(self.relevant[number]),
        )

    def body(self, number: int) -> list[str]:
        """Return the words of a record's text."""
        rng, topic = generator(mix(self.key, 85, number)), int(self.topic[number])
        share = rng.random(BODY)
        tables_ = np.where(share < GENERAL, len(self.topics), topic)
        tables_ = np.where(share > 1 - COMMON, len(self.topics) + 1, tables_)
        return [self._draw(table, rng) for table in tables_.tolist()]

    def _title(self, number: int) -> str:
        rng, topic = generator(mix(self.key, 86, number)), int(self.topic[number])
        words = []
        for share in rng.random(TITLE).tolist():
            table = len(self.topics) if share < GENERAL else topic
            drawn = [self._draw(table, rng) for _ in range(DRAWS)]
            words.append(next((word for word in drawn if titled(word)), drawn[-1]))
        return " ".join(words).title()

    def _draw(self, table: int, rng: np.random.Generator) -> str:
        words = self._tables[table]
        steps = _steps(len(words))
        return str(words[int(np.searchsorted(steps, rng.random() * steps[-1], side="right"))])


@cache
def titled(word: str) -> bool:
    """Return whether a word may occur in a title: most verbs, for example, do not."""
    number = int.from_bytes(word.encode()[:8], "big") >> 1
    return bool(unit(mix(number, 87))[0] >= UNTITLED)


@cache
def _steps(count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.cumsum(1.0 / (np.arange(1.0, count + 1) + OFFSET) ** EXPONENT)


def _name(number: int) -> str:
    parts = []
    for _ in range(3):
        number, rest = divmod(number, len(SYLLABLES))
        parts.append(SYLLABLES[rest])
    return "".join(parts).title()


def _split(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
