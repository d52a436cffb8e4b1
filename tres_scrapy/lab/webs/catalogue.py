"""The pages of the synthetic web that its search engine knows: a few of each popular site."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from tres_scrapy.lab.webs.address import Addresses
from tres_scrapy.lab.webs.noise import Ints
from tres_scrapy.lab.webs.prose import Prose
from tres_scrapy.lab.webs.trait import PAGE

SITES_KNOWN, DEPTH = 65_536, 5  # popular sites, pages of each: the home page and content pages


class Catalogue:
    """Pages in the order of their sites' popularity, indexed by their titles.

    The text of a page is generated only when it is fetched; its title has words of the same topic.
    """

    def __init__(self, addresses: Addresses, prose: Prose) -> None:
        self.addresses, self.prose = addresses, prose
        self.pages, self.sites = addresses.pages, addresses.sites

    def titles(self) -> list[str]:
        """Return the title of every page."""
        return self.prose.titles(self.pages.traits(*self._known))

    def results(self, found: Sequence[int]) -> list[tuple[str, str]]:
        """Return the URL and the title of some of the pages."""
        rows = np.array(found, np.int64)
        site, number = self._known
        pages = self.pages.traits(site[rows], number[rows])
        return list(zip(self.addresses.urls(pages), self.prose.titles(pages), strict=True))

    @cached_property
    def _known(self) -> tuple[Ints, Ints]:
        """Return site and number of every known URL that answers with a unique page."""
        popular = np.argsort(-self.sites.fame, kind="stable")[:SITES_KNOWN]
        site, place = np.repeat(popular, DEPTH), np.tile(np.arange(DEPTH), SITES_KNOWN)
        number = np.where(place == 0, 0, self.pages.first(site) + place - 1)
        shown = self.pages.fate(site, number) == PAGE
        return site[shown], number[shown]
