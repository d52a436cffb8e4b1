"""The traits of pages: kind of answer, topic, true label and title."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.noise import Ints, below, mix, unit
from tres_scrapy.lab.webs.profile import Profile
from tres_scrapy.lab.webs.site import HUB, Sites
from tres_scrapy.lab.webs.vocabulary import Vocabulary

# The kinds of answers of content URLs, and the share of each but PAGE.
PAGE, REDIRECT, MISSING, ERROR, FILE, COPY = range(6)
FATES = np.cumsum([0.03, 0.02, 0.01, 0.02, 0.03])
STATICS = ("about", "contact", "privacy", "login")
TITLE, TOPIC_WORDS = 5, 0.55  # words in a full title, share of words from the topic
# A site's home page and the indexes of its sections are relevant less often than its content.
INDEX_SHARE = 0.35
HOME_SHARES = np.array([0.0, 0.6, 0.15, 0.0])  # by kind of site


@dataclass(frozen=True, slots=True)
class Traits:
    """Traits of n pages: kinds of answers, labels, topics, title words [n, TITLE]."""

    site: Ints
    number: Ints
    fate: Ints
    source: Ints
    relevant: NDArray[np.bool_]
    topic: Ints
    title: Ints

    def take(self, rows: Ints) -> Traits:
        """Return the traits of some of the pages."""
        return Traits(*(getattr(self, field.name)[rows] for field in fields(self)))


class SyntheticPages:
    """Computes the traits of pages from arrays of sites and of page numbers.

    Number 0 is the home page. The section indexes follow, then the content pages, each in section
    number % sections. Numbers from the site's size on are static pages.
    """

    def __init__(
        self, sites: Sites, vocabulary: Vocabulary, profile: Profile, others: Sequence[int] = ()
    ) -> None:
        self.sites, self.vocabulary, self.profile = sites, vocabulary, profile
        self._others = others  # topics that are wanted besides that of the web
        self.key = sites.key

    def first(self, site: Ints) -> Ints:
        """Return the number of the first content page."""
        return 1 + self.sites.sections[site]

    def content(self, site: Ints, number: Ints) -> NDArray[np.bool_]:
        """Return whether each page is content: not a home page, an index or a static page."""
        return (number >= self.first(site)) & (number < self.sites.size[site])

    def section(self, site: Ints, number: Ints) -> Ints:
        """Return the section of each page."""
        index = (number > 0) & (number < self.first(site))
        return np.where(index, number - 1, number % self.sites.sections[site])

    def in_section(self, site: Ints, section: Ints, noise: Ints) -> Ints:
        """Return one content page of a section, chosen by a whole number."""
        first, sections = self.first(site), self.sites.sections[site]
        start = first + (section - first) % sections
        length = np.maximum((self.sites.size[site] - start + sections - 1) // sections, 1)
        number: Ints = start + sections * (noise % length)
        return number

    def fate(self, site: Ints, number: Ints) -> Ints:
        """Return the kind of answer of each URL."""
        drawn = unit(mix(self.key, 10, site, number))
        fates = (np.searchsorted(FATES, drawn, side="right") + 1) % (len(FATES) + 1)
        return np.where(self.content(site, number), fates, PAGE)

    def traits(self, site: Ints, number: Ints) -> Traits:
        """Return the traits of pages; a copy has the content of the page that it repeats."""
        fate = self.fate(site, number)
        source = number
        if (copies := fate == COPY).any():
            original = below(mix(self.key, 11, site, number), 1 << 30)
            original = self.in_section(site, self.section(site, number), original)
            source = np.where(copies, original, number)
        own = self.sites.on_main(site, self.section(site, source))
        relevant = self._relevant(site, source, own)
        topic = np.where(relevant, self.sites.topic, self._topic(site, own))
        title = self._title(site, source, topic)
        return Traits(site, number, fate, source, relevant, topic, title)

    def one(self, site: int, number: int) -> Traits:
        """Return the traits of one page."""
        return self.traits(np.array([site]), np.array([number]))

    def wanted(self, pages: Traits) -> NDArray[np.bool_]:
        """Return the true label of each page: whether it is on a wanted topic."""
        is_other = np.isin(pages.topic, self._others)  # static pages are on no topic
        return pages.relevant | (is_other & (pages.number < self.sites.size[pages.site]))

    def _relevant(self, site: Ints, number: Ints, own: NDArray[np.bool_]) -> NDArray[np.bool_]:
        sites = self.sites
        rate = np.where(own, sites.density[site], sites.stray[site])
        rate = rate * np.where(self.content(site, number), 1.0, INDEX_SHARE)
        rate = np.where(number == 0, HOME_SHARES[sites.kind[site]], rate)
        rate = np.where(number >= sites.size[site], 0.0, rate)
        return unit(mix(self.key, 12, site, number)) < rate

    def _topic(self, site: Ints, own: NDArray[np.bool_]) -> Ints:
        """Return the topic each page would have if it were irrelevant."""
        sites = self.sites
        keeps = own & ((sites.main[site] != sites.topic) | (sites.kind[site] == HUB))
        return np.where(keeps, sites.main[site], sites.second[site])

    def _title(self, site: Ints, number: Ints, topic: Ints) -> Ints:
        """Return the word numbers of each title: words of the topic and plain ones."""
        noise = mix(self.key, 13, site[:, None], number[:, None], np.arange(TITLE))
        plain = unit(noise) > TOPIC_WORDS
        return self.vocabulary.draw(np.where(plain, self.vocabulary.plain, topic[:, None]), noise)
