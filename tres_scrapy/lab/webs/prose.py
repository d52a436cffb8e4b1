"""The words of a synthetic page: text from the word tables of its topics, and anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tres_scrapy.lab.webs.noise import Hash, Ints, below, generator, mix, unit
from tres_scrapy.lab.webs.site import MIXED, PURE
from tres_scrapy.lab.webs.synthetic_page import TITLE, SyntheticPages, Traits

SHORTEST, LONGEST = 80, 500  # words in a content page
FOCUS = 20  # words that a page repeats
HEADING = 3  # most words of a title as it is shown
SENTENCE, PARAGRAPH = 12, 5  # words in a sentence, sentences in a paragraph
EMPTY = ("read more", "link", "here", "more", "next", "»", "3", "continue", "[12]", "click here",
         "details", "")  # fmt: skip
# Shares of anchors that say nothing, show the title, mislead; the rest are plain words.
NOTHING, HONEST, MISLEADING = 0.5, 0.36, 0.08
NEAR_FACTOR = 4.0  # how much more common tempting pages are on the topic's own sites


@dataclass(frozen=True, slots=True)
class Mixture:
    """The shares of a page's words that come from its topic and from a second topic."""

    topic: int
    share: float
    other: int
    other_share: float


class Prose:
    """Writes titles, sentences and anchors."""

    def __init__(self, pages: SyntheticPages) -> None:
        self.pages, self.sites, self.vocabulary = pages, pages.sites, pages.vocabulary
        self.key, self.profile = pages.key, pages.profile

    def mixture(self, page: Traits) -> Mixture:
        """Return the mixture of a page's words; ambiguous pages mix both topics or say little."""
        site, topic = int(page.site[0]), int(page.topic[0])
        u = unit(mix(self.key, 40, site, int(page.source[0]), np.arange(3))).tolist()
        doubt, second = self.profile.doubt, int(self.sites.second[site])
        if page.relevant[0]:
            clear = doubt + 0.08 + 0.26 * u[1]
            share = doubt * (0.4 + 0.5 * u[1]) if u[0] < self.profile.faint else clear
            return Mixture(topic, share, second, 0.15 * u[2])
        close = NEAR_FACTOR if self.sites.kind[site] in (PURE, MIXED) else 1.0
        tempting = u[0] < self.profile.tempting * close
        target = doubt * (0.85 + 0.6 * u[1]) if tempting else 0.06 * u[1] ** 2
        return Mixture(topic, 0.15 + 0.3 * u[2], self.sites.topic, target)

    def headings(self, pages: Traits) -> list[str]:
        """Return the title that each page shows: a few words of its full title."""
        return [self._line(self._heading(row)) for row in pages.title.tolist()]

    def _heading(self, row: Sequence[int]) -> Sequence[int]:
        """Return words of a topic, or any words if none is of a topic."""
        own = [number for number in row if self.vocabulary.is_topical(number)]
        return (own or row)[:HEADING]

    def _line(self, numbers: Sequence[int]) -> str:
        """Return words that begin with a capital letter."""
        text = " ".join(self.vocabulary.words[list(numbers)])
        return text[:1].upper() + text[1:]

    def sentences(self, page: Traits, words: int) -> list[str]:
        """Return the sentences of a page, `words` words in all."""
        noise = mix(self.key, 41, int(page.site[0]), int(page.source[0]))
        mixture, rng = self.mixture(page), generator(noise)
        share = rng.random(words)
        first = share < mixture.share
        second = ~first & (share < mixture.share + mixture.other_share)
        rows = np.full(words, self.vocabulary.background)
        rows[first], rows[second] = mixture.topic, mixture.other
        drawn = self.vocabulary.draw(rows, rng.integers(0, 2**63, words, np.uint64))
        again = first & (rng.random(words) < 0.5)
        focus = np.concatenate([self._drawn(mixture.topic, rng), page.title[0]])
        drawn[again] = focus[rng.integers(0, FOCUS + TITLE, int(again.sum()))]
        lines = [drawn[i : i + SENTENCE].tolist() for i in range(0, words, SENTENCE)]
        return [f"{self._line(line)}." for line in lines]

    def length(self, page: Traits) -> int:
        """Return how many words a content page has."""
        noise = mix(self.key, 42, int(page.site[0]), int(page.source[0]))
        return SHORTEST + int(below(noise, LONGEST - SHORTEST)[0])

    def anchors(self, targets: Traits, noise: Hash) -> list[str]:
        """Return the anchor text of each link: half say nothing, some mislead."""
        share, titles = unit(noise), targets.title
        wrong = below(mix(noise, 1), len(self.vocabulary.topics))
        wrong = np.where(unit(mix(noise, 2)) < 0.5, self.sites.topic, wrong)
        rows = np.where(share < NOTHING + HONEST + MISLEADING, wrong, self.vocabulary.plain)
        false = self.vocabulary.draw(rows[:, None], mix(noise[:, None], 3, np.arange(TITLE)))
        chosen = np.where((share < NOTHING + HONEST)[:, None], titles, false)
        lengths = 2 + (noise % np.uint64(TITLE - 2)).astype(np.int64)
        words = self.vocabulary.words[chosen].tolist()
        empty = below(mix(noise, 4), len(EMPTY)).tolist()
        rows_ = zip(share < NOTHING, empty, words, lengths.tolist(), strict=True)
        return [EMPTY[e] if nothing else " ".join(w[:n]) for nothing, e, w, n in rows_]

    def _drawn(self, topic: int, rng: np.random.Generator) -> Ints:
        return self.vocabulary.draw(np.full(FOCUS, topic), rng.integers(0, 2**63, FOCUS, np.uint64))
