"""The pages of the changing web: their sites, sections and change rates."""

from __future__ import annotations

import numpy as np

from tres_scrapy.lab.webs.noise import Ints, below, mix, unit
from tres_scrapy.lab.webs.vocabulary import Vocabulary

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
