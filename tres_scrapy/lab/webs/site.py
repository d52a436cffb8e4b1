"""The sites of the synthetic web: sizes, kinds, topics and sections, one array element per site."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.noise import Ints, below, mix, unit
from tres_scrapy.lab.webs.vocabulary import topics
from tres_scrapy.url.message import TresError


@dataclass(frozen=True, slots=True)
class Profile:
    """The shares of one topic."""

    prevalence: float  # share of the sites that are about the topic
    strong: float  # share of a relevant page's outward links that stay in the topic
    weak: float  # the same for an irrelevant page on one of the topic's sites
    leak: float  # the same for a page anywhere else
    faint: float  # share of relevant pages with few words of the topic
    tempting: float  # share of irrelevant pages with many words of the topic
    doubt: float  # share of the topic's words at which the relevance of a page is unclear


# Calibrated by the harvest of random, breadth-first and oracle crawls.
PROFILES = {
    "food": Profile(0.05, 0.49, 0.28, 0.07, 0.09, 0.009, 0.52),
    "sports": Profile(0.04, 0.32, 0.13, 0.016, 0.09, 0.012, 0.18),
    "hardware": Profile(0.03, 0.15, 0.08, 0.002, 0.13, 0.012, 0.45),
}

# Of a topic that the paper does not measure: halfway between sports and hardware.
OTHER = Profile(0.035, 0.24, 0.1, 0.009, 0.11, 0.012, 0.32)


def profile_of(topic: str) -> Profile:
    """Return the profile of a topic; raise TresError if no word table has the topic."""
    if topic not in topics():
        raise TresError(
            f"topic={topic!r} has no synthetic web; choose one of {', '.join(topics())}"
        )
    return PROFILES.get(topic, OTHER)


SITE_BITS = 18
SITES = 1 << SITE_BITS
KINDS = ("off", "pure", "mixed", "hub")
OFF, PURE, MIXED, HUB = range(len(KINDS))
HUB_SHARE = 0.02  # of all sites
PURE_SHARE = 0.6  # of the sites about the topic; the others are mixed
TAIL, SMALLEST, LARGEST = 1.1, 16, 150_000  # sizes follow a truncated Pareto law
MOST_SECTIONS = 8
# Share of relevant content pages in a site's sections about the topic, by kind of site.
DENSITY = {PURE: 0.9, MIXED: 0.9, HUB: 0.0}
STRAY = 0.03  # share of relevant pages in the other sections of a mixed site


class Sites:
    """Everything about a site that does not depend on its pages.

    `main` is the topic of a site's main sections, `second` the topic of its other sections.
    `members[t]` are the sites with main topic t in order, `popular[t]` the same by popularity.
    """

    def __init__(self, key: int, topic: int, topics: int, profile: Profile) -> None:
        sites = np.arange(SITES)

        def share(lane: int) -> NDArray[np.float64]:
            return unit(mix(key, 1, sites, lane))

        self.key, self.topic = key, topic
        sizes = SMALLEST * (1 - share(0)) ** (-1 / TAIL)
        self.size: Ints = np.minimum(sizes, LARGEST).astype(np.int64)
        about = share(1) < profile.prevalence
        other = (topic + 1 + below(mix(key, 1, sites, 2), topics - 1)) % topics
        self.main: Ints = np.where(about, topic, other)
        self.second: Ints = (topic + 1 + below(mix(key, 1, sites, 3), topics - 1)) % topics
        self.kind: Ints = np.where(about, np.where(share(4) < PURE_SHARE, PURE, MIXED), OFF)
        self.kind[share(5) < HUB_SHARE] = HUB
        self._divide(share(6), share(7))
        self.turn: Ints = below(mix(key, 1, sites, 10), self.sections)
        self.density, self.stray = self._densities(share(8))
        self._rank(share(9), topics)

    def _divide(self, extra: NDArray[np.float64], share: NDArray[np.float64]) -> None:
        """Give every site 1 to 8 sections (mixed sites at least 3), some on its main topic."""
        least = np.where(self.kind == MIXED, 3, 1)
        wished = np.log2(self.size / 8) * (0.5 + extra)
        self.sections: Ints = np.clip(wished, least, MOST_SECTIONS).astype(np.int64)
        part = np.where(self.kind == MIXED, 0.2 + 0.45 * share, 0.7 + 0.3 * share)
        part[(self.kind == PURE) | (self.kind == HUB)] = 1.0
        self.own: Ints = np.clip(np.round(part * self.sections), 1, self.sections).astype(np.int64)

    def _densities(
        self, share: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return each site's share of relevant content in its own sections and in the others."""
        off = 0.02 * share**2
        density = np.select([self.kind == kind for kind in DENSITY], list(DENSITY.values()), off)
        return density, np.where(self.kind == MIXED, STRAY, off)

    def _rank(self, share: NDArray[np.float64], topics: int) -> None:
        """List the sites of each topic by number and by popularity."""
        self.fame = self.size ** (0.3 + 0.7 * share)
        self.members = [np.flatnonzero(self.main == topic) for topic in range(topics)]
        self.popular = [members[np.argsort(-self.fame[members])] for members in self.members]
        self.place: Ints = np.zeros(SITES, np.int64)
        for members in self.members:
            self.place[members] = np.arange(len(members))

    def on_main(self, site: Ints, section: Ints) -> NDArray[np.bool_]:
        """Return whether each section is on its site's main topic."""
        turned = (section + self.turn[site]) % self.sections[site]
        return turned < self.own[site]

    def main_section(self, site: Ints, noise: Ints) -> Ints:
        """Return one of each site's sections on its main topic."""
        return (noise % self.own[site] - self.turn[site]) % self.sections[site]

    def has(self, site: Ints, lane: int, share: float) -> NDArray[np.bool_]:
        """Return whether each site has a property that this share of all sites has."""
        return unit(mix(self.key, 3, site, lane)) < share
