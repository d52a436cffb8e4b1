"""The addresses of the synthetic web: hosts under .test, and page to URL and back."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from tres_scrapy.lab.webs.noise import Ints, Shuffle, below, mix, unit
from tres_scrapy.lab.webs.site import SITE_BITS, SITES
from tres_scrapy.lab.webs.synthetic_page import FILE, STATICS, SyntheticPages, Traits

CONSONANTS, VOWELS = "bdfgklmnprstvzjh", "aeio"
SYLLABLES = [c + v for c in CONSONANTS for v in VOWELS]
PLACES = {syllable: place for place, syllable in enumerate(SYLLABLES)}
PREFIXES = ("www.", "", "blog.", "shop.")
PREFIX_SHARES = np.cumsum([0.6, 0.25, 0.1])
PAGE_BITS = 18
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
PAIRS = [first + second for first in DIGITS for second in DIGITS]
# How a site writes the address of a content page: half of the sites show words of the title.
STYLES = ("/{folder}/{slug}-{code}.html", "/{slug}-{code}/", "/p/{code}",
          "/index.php?page={code}", "/c{section}/{code}.html")  # fmt: skip
STYLE_SHARES = np.cumsum([0.3, 0.2, 0.2, 0.15])
WORDY = 2  # styles below this one show words
TOPICAL, TEMPTING = 0.15, 0.02  # shares of hosts named by a word of their topic, of the crawl's


class Addresses:
    """Writes the URL of a page, and finds the page of a URL that it wrote."""

    def __init__(self, pages: SyntheticPages) -> None:
        sites = np.arange(SITES)
        self.pages, self.sites, self.vocabulary = pages, pages.sites, pages.vocabulary
        self.names, self.codes = Shuffle(SITE_BITS, pages.key), Shuffle(PAGE_BITS, pages.key + 1)
        noise = [mix(pages.key, 20, sites, lane) for lane in range(5)]
        self.prefix = np.searchsorted(PREFIX_SHARES, unit(noise[0]), side="right")
        self.style = np.searchsorted(STYLE_SHARES, unit(noise[1]), side="right")
        self.offset = below(noise[2], 1 << PAGE_BITS)
        self.form = unit(noise[3])
        topic = np.where(self.form < TOPICAL, self.sites.main, self.sites.topic)
        self.word = self.vocabulary.draw(topic, noise[4])

    def host(self, site: int) -> str:
        """Return the host of a site, with or without a subdomain."""
        prefix, form = PREFIXES[self.prefix[site]], self.form[site]
        place = self.names.forward(site)
        code = SYLLABLES[place >> 12] + SYLLABLES[place >> 6 & 63] + SYLLABLES[place & 63]
        if form < TOPICAL + TEMPTING:
            return f"{prefix}{self.vocabulary.slugs[self.word[site]]}-{code}.test"
        return f"{prefix}{code[:4]}-{code[4:]}.test" if form < 0.5 else f"{prefix}{code}.test"

    def site(self, host: str) -> int | None:
        """Return the site of a host, None for a host that does not exist."""
        code = host.removesuffix(".test").replace("-", "")[-6:]
        syllables = [code[i : i + 2] for i in (0, 2, 4)]
        if any(syllable not in PLACES for syllable in syllables):
            return None
        place = 0
        for syllable in syllables:
            place = place << 6 | PLACES[syllable]
        site = self.names.back(place)
        return site if self.host(site) == host else None

    def paths(self, traits: Traits) -> list[str]:
        """Return the path and query of each page."""
        columns = (traits.site, traits.number, traits.fate, self.vocabulary.slugs[traits.title])
        rows = zip(*(column.tolist() for column in columns), strict=True)
        return [self._path(*row) for row in rows]

    def urls(self, traits: Traits) -> list[str]:
        """Return the URL of each page."""
        paths = zip(traits.site.tolist(), self.paths(traits), strict=True)
        return [f"http://{self.host(site)}{path}" for site, path in paths]

    def find(self, places: Sequence[tuple[int, str]]) -> tuple[Ints, Traits]:
        """Return which places (site, path and query) have a page, and the traits of those pages."""
        candidates = [(i, p[0], n) for i, p in enumerate(places) for n in self._candidates(*p)]
        place, site, number = np.array(candidates, np.int64).reshape(-1, 3).T
        traits = self.pages.traits(site, number)
        paths = zip(place.tolist(), self.paths(traits), strict=True)
        right = np.flatnonzero([path == places[i][1] for i, path in paths])
        found, first = np.unique(place[right], return_index=True)
        return found, traits.take(right[first])

    def folder(self, site: int, section: int) -> str:
        """Return the name of a section in a URL: a word on sites that show words."""
        if self.style[site] >= WORDY:
            return f"c{section}"
        sites = self.sites
        own = (section + sites.turn[site]) % sites.sections[site] < sites.own[site]
        topic = sites.main[site] if own else sites.second[site]
        quantiles = self.vocabulary.quantiles[topic]
        word = quantiles[(self.offset[site] + 977 * section) % len(quantiles)]
        return str(self.vocabulary.slugs[word])

    def _candidates(self, site: int, target: str) -> list[int]:
        parts = urlsplit(target)
        last = parts.path.rstrip("/").rpartition("/")[2]
        if not last:
            return [0]
        if last in STATICS:
            return [int(self.sites.size[site]) + STATICS.index(last)]
        sections = range(int(self.sites.sections[site]))
        folders = [1 + j for j in sections if self.folder(site, j) == last]
        text = last.partition(".")[0].rpartition("-")[2]
        place = _decode(dict(parse_qsl(parts.query)).get("page", text))
        number = (self.codes.back(place) - int(self.offset[site])) % (1 << PAGE_BITS)
        return [*folders, min(number, int(self.sites.size[site]) - 1)]

    def _path(self, site: int, number: int, fate: int, title: list[str]) -> str:
        sections, size = int(self.sites.sections[site]), int(self.sites.size[site])
        if number == 0:
            return "/"
        if number <= sections:
            return f"/{self.folder(site, number - 1)}/"
        if number >= size:
            return f"/{STATICS[number - size]}"
        place = self.codes.forward((number + int(self.offset[site])) % (1 << PAGE_BITS))
        if fate == FILE:
            return f"/files/{_encode(place)}.{'pdf' if place % 2 else 'jpg'}"
        style, section = self.style[site], number % sections
        folder, slug = "", ""
        if style < WORDY:
            folder = self.folder(site, section)
            slug = "-".join(title[: 2 + place % 4])
        return STYLES[style].format(folder=folder, slug=slug, code=_encode(place), section=section)


def _encode(place: int) -> str:
    return PAIRS[place // len(PAIRS)] + PAIRS[place % len(PAIRS)]


def _decode(code: str) -> int:
    known = len(code) == 4 and all(c in DIGITS for c in code)
    return int(code, 36) % (1 << PAGE_BITS) if known else 0
