"""The targets of a synthetic page's links: its section, its site, other sites and adverts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.noise import Hash, Ints, below, mix, unit
from tres_scrapy.lab.webs.site import HUB, MIXED, PURE
from tres_scrapy.lab.webs.trait import SyntheticPages, Traits

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
