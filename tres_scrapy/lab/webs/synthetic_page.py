"""The pages of the synthetic web: kind of answer, topic, true label, title and links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.noise import Hash, Ints, below, mix, unit
from tres_scrapy.lab.webs.site import HUB, MIXED, PURE, Profile, Sites
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


# Numbers of links to the own section, to the rest of the site, to other sites, and of adverts.
CONTENT, INDEX, HUB_PAGE, HOME = (9, 3, 30, 3), (20, 2, 18, 3), (4, 2, 44, 1), (4, 16, 18, 3)
HUB_STRONG = 0.85  # share of a hub page's outward links that keep to its topic
FAITHFUL = 0.6  # share of off-topic pages' outward links that keep to their own topic
NEAR = 0.6  # share of outward links to sites of near number; the others lead to popular sites
HOMES, INDEXES = 0.15, 0.1  # shares of outward links to a home page, to a section index
SAME_TOPIC = 0.65  # share of outward links to content in a section on the site's topic


@dataclass(frozen=True, slots=True)
class Targets:
    """The links of a page as arrays of sites and page numbers, and how many stay on the site."""

    site: Ints
    number: Ints
    inside: int
    adverts: int


class LinkChooser:
    """Chooses the links of a page."""

    def __init__(self, pages: SyntheticPages, topics: int) -> None:
        self.pages, self.sites, self.profile = pages, pages.sites, pages.profile
        self.key, self.topics = pages.key, topics

    def targets(self, page: Traits) -> Targets:
        """Return the links of one page, without the navigation that its site repeats."""
        site, number = int(page.site[0]), int(page.number[0])
        section, other, outward, adverts = self._counts(site, number)
        near = self._neighbours(site, number, section)
        rest = self._inside(site, number, other)
        away = self._outward(page, outward)
        sold = self._adverts(site, number, adverts)
        inside = np.full(section + other, site)
        return Targets(
            np.concatenate([inside, away[0], sold[0]]),
            np.concatenate([near, rest, away[1], sold[1]]),
            section + other,
            adverts,
        )

    def _counts(self, site: int, number: int) -> tuple[int, int, int, int]:
        if self.sites.kind[site] == HUB:
            return HUB_PAGE
        if number == 0:
            return HOME
        return INDEX if number <= self.sites.sections[site] else CONTENT

    def _neighbours(self, site: int, number: int, count: int) -> Ints:
        """Return content pages of the same section, near the page in the section's order."""
        where = np.full(count, site)
        section = self.pages.section(where[:1], np.array([number]))
        noise = mix(self.key, 30, site, number, np.arange(count))
        place = number // int(self.sites.sections[site])
        steps = place + below(noise, 6 * count) - 3 * count
        return self.pages.in_section(where, np.broadcast_to(section, count), steps)

    def _inside(self, site: int, number: int, count: int) -> Ints:
        first = int(self.sites.sections[site]) + 1
        noise = mix(self.key, 31, site, number, np.arange(count))
        return first + below(noise, self.sites.size[site] - first)

    def _outward(self, page: Traits, count: int) -> tuple[Ints, Ints]:
        site, number = int(page.site[0]), int(page.number[0])
        noise = mix(self.key, 32, site, number, np.arange(count * 5)).reshape(5, count)
        topic = self._topics(site, int(page.topic[0]), bool(page.relevant[0]), noise[0])
        target = self._choose(site, topic, unit(noise[1]), noise[2])
        return target, self._entrance(target, topic, unit(noise[3]), noise[4])

    def _topics(self, site: int, written: int, relevant: bool, noise: Hash) -> Ints:
        """Return the topic of each outward link."""
        stay, target = self._stay(site, written, relevant)
        share = unit(noise)
        own = written if written != self.sites.topic else int(self.sites.second[site])
        other = self.sites.topic + 1 + (noise % np.uint64(self.topics - 1)).astype(np.int64)
        faithful = (share - stay) / (1 - stay) < FAITHFUL
        return np.where(share < stay, target, np.where(faithful, own, other % self.topics))

    def _stay(self, site: int, written: int, relevant: bool) -> tuple[float, int]:
        """Return the share of links that lead to sites of one topic, and that topic."""
        target, kind = self.sites.topic, self.sites.kind[site]
        if kind == HUB:
            return HUB_STRONG, written
        if relevant:
            return self.profile.strong, target
        return self.profile.weak if kind in (PURE, MIXED) else self.profile.leak, target

    def _choose(self, site: int, topic: Ints, share: NDArray[np.float64], noise: Hash) -> Ints:
        """Return a site of each topic, near in number or popular."""
        sizes = np.array([len(members) for members in self.sites.members])[topic]
        home = np.where(self.sites.main[site] == topic, self.sites.place[site], site)
        distance = (2 * unit(noise) ** -1.2).astype(np.int64) + 1
        near = (home + np.where(noise % np.uint64(2) == 0, distance, -distance)) % sizes
        famous = np.floor(sizes ** unit(noise)).astype(np.int64) % sizes
        pairs = zip(topic.tolist(), share < NEAR, near.tolist(), famous.tolist(), strict=True)
        members, popular = self.sites.members, self.sites.popular
        return np.array([members[t][n] if by else popular[t][f] for t, by, n, f in pairs])

    def _entrance(self, site: Ints, topic: Ints, share: NDArray[np.float64], noise: Hash) -> Ints:
        """Return the page of each site that an outward link leads to."""
        number = (noise >> np.uint64(34)).astype(np.int64)
        own = self.sites.main_section(site, number)
        section = np.where(share < HOMES + INDEXES + SAME_TOPIC, own, number)
        section = section % self.sites.sections[site]
        content = self.pages.in_section(site, section, number >> 4)
        return np.select([share < HOMES, share < HOMES + INDEXES], [0 * content, 1 + own], content)

    def _adverts(self, site: int, number: int, count: int) -> tuple[Ints, Ints]:
        noise = mix(self.key, 33, site, number, np.arange(count))
        topic = below(noise, self.topics)
        target = self._choose(site, topic, np.ones(count), noise)
        return target, np.zeros(count, np.int64)
