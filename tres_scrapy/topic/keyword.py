"""The keywords of a topic and how they are found in texts and URLs (P 2.3)."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote, urlsplit

from tres_scrapy.page.place import tokenise
from tres_scrapy.url.canonical import PLAIN_URL
from tres_scrapy.url.message import TresError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

LETTERS: Final = re.compile(r"[^\W\d_]+")
MIN_INNER_LENGTH: Final = 5  # shorter keywords are part of unrelated words: meat in meath


class KeywordError(TresError):
    """Says which keyword is wrong, or that none can be used."""


class KeywordSet:
    """The keywords of a topic: single words and phrases."""

    def __init__(self, words: Iterable[str], phrases: Iterable[str] = ()) -> None:
        self.words = frozenset(word.lower() for word in words)
        self.phrases = tuple(dict.fromkeys(phrase.lower() for phrase in phrases))
        self._inner = _any_of(word for word in self.words if len(word) >= MIN_INNER_LENGTH)
        # phrases without letters are dropped: they would match any text
        self._spaced = tuple(filter(str.strip, map(_spaced, self.phrases)))
        # by the first word; a single letter, as in jell-o, does not count as a word
        self._by_first: dict[str, list[tuple[str, list[str]]]] = {}
        for phrase in self.phrases:
            if parts := tokenise(phrase):
                self._by_first.setdefault(parts[0], []).append((phrase, parts))
        letters_only = any(not tokenise(phrase) for phrase in self._spaced)  # such as "a b"
        self._starts = None if letters_only else self._by_first.keys()

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the lines of a file in UTF-8; raise KeywordError if a line is not a keyword."""
        try:
            return cls.parse(path.read_text(encoding="utf-8-sig").splitlines())
        except ValueError as error:  # a UnicodeDecodeError is one
            raise KeywordError(f"keywords file {path.name!r}: {error}") from error

    @classmethod
    def parse(cls, lines: Iterable[str]) -> Self:
        """Read one keyword or phrase per line, or several with commas between.

        What is not one plain word is a phrase. Blank lines and lines that start with # are skipped.
        Raise KeywordError if a keyword has no letters or there is none.
        """
        stripped = (line.strip().lower() for line in lines)
        parts = (line.split(",") for line in stripped if not line.startswith("#"))
        entries = [entry for part in parts for each in part if (entry := each.strip())]
        if not entries:
            raise KeywordError("no keywords: write one word or phrase per line")
        for entry in entries:
            if not LETTERS.search(entry):
                raise KeywordError(f"keyword {entry!r} must hold letters: fix or remove the line")
        words = [entry for entry in entries if tokenise(entry) == [entry]]
        return cls(words, [entry for entry in entries if entry not in words])

    def in_text(self, text: str) -> bool:
        """Return whether the text contains a keyword as a word, or a phrase."""
        return self._has_any(tokenise(text), text)

    def in_words(self, words: Sequence[str]) -> bool:
        """Return whether the text of these words, which are from `tokenise`, contains one."""
        return self._has_any(words, " ".join(words))

    def counts(self, words: Sequence[str]) -> Counter[str]:
        """Return how often each keyword and phrase occurs in words from `tokenise`."""
        return Counter([*filter(self.words.__contains__, words), *self._phrases_in(words)])

    def in_url(self, url: str) -> bool:
        """Return whether host or path contain a keyword, even inside a word (`mycheeseshop`)."""
        if PLAIN_URL.fullmatch(url):
            host, _, path = url.partition("//")[2].partition("?")[0].partition("/")
            text = f"{host} /{path}".lower()
        else:
            try:
                parts = urlsplit(url)
            except ValueError:
                return False
            text = unquote(f"{parts.netloc} {parts.path}").lower()
        return self.in_text(text) or self._inner.search(text) is not None

    def _has_any(self, words: Sequence[str], text: str) -> bool:
        if not self.words.isdisjoint(words):
            return True
        if self._starts is not None and self._starts.isdisjoint(words):  # most texts, and fast
            return False
        return any(map(_spaced(text).__contains__, self._spaced))

    def _phrases_in(self, words: Sequence[str]) -> Iterator[str]:
        if self._by_first.keys().isdisjoint(words):  # true for most texts, and fast
            return
        for place, word in enumerate(words):
            for phrase, parts in self._by_first.get(word, ()):
                if list(words[place : place + len(parts)]) == parts:
                    yield phrase


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    """Return what finds any of the words, grouped by first letter: eight times as fast as `in`."""
    rests: dict[str, list[str]] = {}
    for word in sorted(words):
        rests.setdefault(word[0], []).append(re.escape(word[1:]))
    groups = (f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items())
    return re.compile("|".join(groups) or "(?!)")  # which is found nowhere


def _spaced(text: str) -> str:
    return f" {' '.join(LETTERS.findall(text.lower()))} "
