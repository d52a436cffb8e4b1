"""The search engine of an offline web: BM25 (Robertson and Zaragoza, 2009) behind a web form."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from html import escape
from urllib.parse import parse_qs, quote_plus, urlsplit

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.web import HTML, TEXT, Answer

HOST = "search.test"
SEARCH = f"http://{HOST}/?q={{query}}"
PER_PAGE, MOST = 10, 100  # results on a page, results of a query
SATURATION, LENGTH_SHARE = 1.2, 0.75  # k1 and b of BM25
PAGE_NUMBER = re.compile(r"[1-9][0-9]{0,3}")


def split_words(text: str) -> list[str]:
    """Return the words of a text or of a query in lower case."""
    return re.findall(r"\w+", text.lower())


class Index:
    """Finds texts, each a list of words, by the words in them."""

    def __init__(self, texts: Iterable[Sequence[str]]) -> None:
        numbers = defaultdict[str, int]()
        numbers.default_factory = numbers.__len__  # a new word gets the next number
        words, lengths = array("i"), array("i")
        for text in texts:
            words.extend(map(numbers.__getitem__, text))
            lengths.append(len(text))
        self.numbers = dict(numbers)
        occurrences, length = np.array(words), np.array(lengths)
        self.starts = np.cumsum([0, *np.bincount(occurrences)])
        order = np.argsort(occurrences, kind="stable")
        self.texts = np.repeat(np.arange(len(length), dtype=np.int32), length)[order]
        share = LENGTH_SHARE * length / length.mean()
        self.norms: NDArray[np.float64] = SATURATION * (1 - LENGTH_SHARE + share)

    def best(self, words: Iterable[str]) -> list[int]:
        """Return the texts that contain some of the words, best first; ties keep their order."""
        scores = np.zeros(len(self.norms))
        for word in sorted({*words} & self.numbers.keys()):
            self._score(self.numbers[word], scores)
        found = np.flatnonzero(scores)
        best: list[int] = found[np.argsort(-scores[found], kind="stable")][:MOST].tolist()
        return best

    def _score(self, word: int, scores: NDArray[np.float64]) -> None:
        """Add to the scores of the texts that contain a word."""
        held = self.texts[self.starts[word] : self.starts[word + 1]]
        texts, times = np.unique(held, return_counts=True)
        rarity = np.log(1 + (len(scores) - len(texts) + 0.5) / (len(texts) + 0.5))
        scores[texts] += rarity * times * (SATURATION + 1) / (times + self.norms[texts])


class Engine:
    """Answers requests to the search engine's host.

    `texts` returns the text of every known page and is called at the first query; `results`
    returns the URLs and titles of pages, by their places in `texts`.
    """

    def __init__(
        self,
        texts: Callable[[], Iterable[str]],
        results: Callable[[Sequence[int]], Iterable[tuple[str, str]]],
    ) -> None:
        self._texts, self._results = texts, results

    def answer(self, url: str) -> Answer:
        """Return a page of ten results for a query, or the empty form."""
        parts = urlsplit(url)
        if parts.path == "/robots.txt":
            return Answer(200, b"User-agent: *\nDisallow:\n", TEXT, "robots")
        if parts.path not in ("", "/"):
            return Answer(404, b"the search engine has no such page\n", TEXT, "missing")
        asked = dict(parse_qs(parts.query))
        query, page = asked.get("q", [""])[0], asked.get("page", ["1"])[0]
        end = PER_PAGE * (int(page) if PAGE_NUMBER.fullmatch(page) else 1)
        found = self._index.best(split_words(query)) if query else []
        more = f"/?q={quote_plus(query)}&page={end // PER_PAGE + 1}" if end < len(found) else ""
        html = _html(query, self._results(found[end - PER_PAGE : end]), more)
        return Answer(200, html.encode(), HTML, "search")

    @cached_property
    def _index(self) -> Index:
        return Index(split_words(text) for text in self._texts())


def _html(query: str, results: Iterable[tuple[str, str]], more: str) -> str:
    items = "".join(
        f'<li><a href="{escape(url)}">{escape(title, quote=False)}</a></li>'
        for url, title in results
    )
    following = f'<p><a href="{escape(more)}">next</a></p>' if more else ""
    return (
        "<!DOCTYPE html><html><head><title>Search</title></head><body>"
        f'<form action="/"><input name="q" value="{escape(query)}"><button>Search</button></form>'
        f"<ol>{items}</ol>{following}</body></html>"
    )
