"""The records of a deep-web site, which only a search of their titles can reach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

from tres_scrapy.lab.webs.noise import Ints, below, generator, mix, unit
from tres_scrapy.lab.webs.search import split_words
from tres_scrapy.lab.webs.vocabulary import STOP_WORDS, tables

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
            for word in set(split_words(self.titles[number])):
                self._found.setdefault(word, []).append(number)

    def search(self, query: str) -> list[int]:
        """Return the numbers of records whose titles contain every word: the CAP best."""
        words = split_words(query)
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
