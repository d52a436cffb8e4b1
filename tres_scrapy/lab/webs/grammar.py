"""A small English grammar: sentences and titles from words in any order.

The words stay. The grammar orders them by part of speech and adds function words, which the reward
model does not read.
"""

from __future__ import annotations

import json
from collections import defaultdict, deque
from collections.abc import Collection, Iterable
from functools import cache
from importlib import resources
from typing import NamedTuple

from tres_scrapy.page.text import STOP_WORDS

MASK = (1 << 64) - 1
NOUNS = frozenset(("noun", "mass", "plural", "name", "pronoun"))
VERBS = frozenset(("verb", "singular verb", "past", "ing"))
DETERMINERS = {
    "noun": ("the", "a", "the", "a", "the", "this", "its", "the", "a", "our", "every"),
    "mass": ("the", "the", "the", "some", "its", "this"),
    "plural": ("the", "", "the", "", "some", "these", "its", "most"),
}
PREPOSITIONS = ("of", "in", "with", "for", "from", "of", "on", "in", "with", "after")
PLACES = ("in", "on", "from", "with", "for")  # after "is"
JOINTS = ("and", "but", "while", "because", "so", "when", "and")
MODALS = ("can", "will", "may", "should", "must")
LINKS = ("with", "and", "for", "and", "from", "in", "of")  # between the parts of a title
REGULAR = ("ed", "en", "wn")  # endings of participles: "grated", but not "gave"
LONG = 7  # nouns and verbs in a sentence of two clauses: more make two sentences


class Word(NamedTuple):
    """A word as it is written, and its kind: part of speech and number."""

    text: str
    kind: str


class _Phrase(NamedTuple):
    text: str
    is_plural: bool = False


@cache
def lexicon() -> dict[str, Word]:
    """Return the words of the shipped tables, without function words, by their lower case."""
    text = resources.files(__package__).joinpath("kinds.json").read_text(encoding="utf-8")
    kinds: dict[str, str] = json.loads(text)
    return {each.lower(): Word(each, kind) for kind, row in kinds.items() for each in row.split()}


def sentence(words: Iterable[Word], seed: int) -> str:
    """Return one or two sentences with the words; the seed chooses the function words."""
    return _Writer(words, seed).sentence()


def lead(title: str) -> str:
    """Return the first sentence of a page with this title; it has no other words for the model."""
    start = "Here is " if title.startswith("How to ") else "This is all about "
    first, _, rest = title.partition(" ")
    is_name = first.lower() in lexicon() and lexicon()[first.lower()].kind == "name"
    return f"{start}{first if is_name else first.lower()}{f' {rest}' if rest else ''}."


def short(words: Iterable[Word]) -> list[Word]:
    """Return the words of a title that people would write: a verb, an adjective and two nouns."""
    room = {"noun": 2, "adjective": 1, "verb": 1}
    chosen = []
    for word in words:
        kind = "noun" if word.kind in NOUNS else "adjective" if _is_participle(word) else word.kind
        if room.get(kind, 0) > 0:
            room[kind] -= 1
            chosen.append(word)
    return chosen if room["noun"] < 2 else []


def headline(words: Iterable[Word], seed: int) -> str:
    """Return a title with the words, such as "Smoked trout with lemon"."""
    return _Writer(words, seed).headline()


class _Writer:
    """Builds clauses from words that wait in queues by kind; each method uses up some of them."""

    def __init__(self, words: Iterable[Word], seed: int) -> None:
        self.state = seed & MASK
        self.others: dict[str, deque[str]] = defaultdict(deque)
        self.nouns, self.verbs = deque[Word](), deque[Word]()
        for word in words:
            if word.kind in NOUNS:
                self.nouns.append(word)
            elif word.kind in VERBS:
                self.verbs.append(word)
            else:
                self.others[word.kind].append(word.text)

    def sentence(self) -> str:
        nouns, verbs = len(self.nouns), len(self.verbs)
        is_double, joint = nouns > 2 and (verbs > 1 or nouns > 4), self._next("joint")
        spare = self._spare_verbs(1 + is_double)
        first = self._opening() + self._clause(-(-nouns // 2) if is_double else nouns)
        if not is_double:
            return _capital(f"{first}{spare}{self._rest()}.")
        second = f"{self._clause(len(self.nouns))}{spare}{self._rest()}."
        if nouns + verbs > LONG and not joint:
            return f"{_capital(first)}. {_capital(second)}"
        return f"{_capital(first)}, {joint or self._pick(JOINTS)} {second}"

    def headline(self) -> str:
        verb = self._pop_verb({"verb"})
        predicate = "" if verb or len(self.nouns) < 2 else self._pop_verb({"singular verb", "past"})
        spare, parts = self._spare_verbs(0), []
        while self.nouns:
            parts.append(self._noun(determined=False).text)
            if self.nouns:
                parts.append(predicate or self._next("preposition") or self._pick(LINKS))
            predicate = ""
        words = [*parts, *self.others.pop("adverb", ()), *self.others.pop("adjective", ())]
        words += [word for each in self.others.values() for word in each if word not in STOP_WORDS]
        start = f"{self._pick(('', 'how to '))}{verb} " if verb else ""
        return _capital(f"{start}{' '.join(words)}{spare}".strip())

    def _pop_verb(self, kinds: Collection[str]) -> str:
        """Return the first of these verbs, "" if none waits; participles wait as adjectives."""
        for place, word in enumerate(self.verbs):
            if word.kind in kinds and not _is_participle(word):
                del self.verbs[place]
                return word.text
        return ""

    def _spare_verbs(self, kept: int) -> str:
        """Keep some verbs; turn other participles into adjectives and return the rest as text."""
        rest = []
        while len(self.verbs) > kept:
            word = self.verbs.pop()
            if _is_participle(word):
                self.others["adjective"].append(word.text)
            else:
                rest.append(f"to {word.text}" if word.kind == "verb" else f"that {word.text}")
        return f" {' and '.join(rest)}" if rest else ""

    def _opening(self) -> str:
        is_rich = len(self.others["adverb"]) > 1
        return f"{self._next('adverb')}, " if is_rich else ""

    def _clause(self, nouns: int) -> str:
        """Return a clause with so many nouns, and with the next verb if one waits."""
        verb = self.verbs.popleft() if self.verbs else None
        after = len(self.nouns) - nouns
        if nouns == 0 and verb and verb.kind == "verb":
            return verb.text
        subject = self._noun() if nouns else _Phrase("it")
        words = [subject.text]
        if len(self.nouns) - after > 2:
            words += [self._link(), self._noun().text]
        words.append(self._predicate(verb, subject.is_plural, len(self.nouns) > after))
        if verb is None and len(self.nouns) > after:
            words.append(self._pick(PLACES))
        while len(self.nouns) > after:
            words.append(self._noun().text)
            if len(self.nouns) > after:
                words.append(self._link())
        return " ".join(words)

    def _predicate(self, verb: Word | None, is_plural: bool, has_object: bool) -> str:
        be = self._pick(("are", "were") if is_plural else ("is", "was"))
        adverb, kind = self._next("adverb"), verb.kind if verb else ""
        last = verb.text if verb else self._next("adjective") or ("" if has_object else "here")
        if kind in {"", "ing"} or (kind == "past" and not has_object):
            auxiliary = be
        elif kind == "verb" and not is_plural:
            auxiliary = self._pick(MODALS)
        else:
            auxiliary = "each" if kind == "singular verb" and is_plural else ""
        return " ".join(word for word in (auxiliary, adverb, last) if word)

    def _noun(self, *, determined: bool = True) -> _Phrase:
        word = self.nouns.popleft()
        if word.kind == "pronoun":
            return _Phrase(word.text)
        words = []
        if self._crowded() or (self.others["adjective"] and self._pick(("some", ""))):
            words.append(self._next("adjective"))
        is_plural = word.kind == "plural"
        words.append(word.text)
        count = self._next("many" if is_plural else "each") if word.kind != "name" else ""
        if not count and determined and (choices := DETERMINERS.get(word.kind)):
            count = _article(self._pick(choices), words[0])
        return _Phrase(" ".join([count, *words] if count else words), is_plural)

    def _crowded(self) -> bool:
        """Return whether every noun that waits will need an adjective."""
        return len(self.others["adjective"]) > len(self.nouns)

    def _link(self) -> str:
        return self._next("preposition") or self._pick(PREPOSITIONS)

    def _rest(self) -> str:
        """Return the words that found no place."""
        adjectives = " and ".join(self.others["adjective"])
        text = f", as it is {adjectives}" if adjectives else ""
        left = [
            word
            for kind, words in self.others.items()
            if kind not in {"adjective", "adverb"}
            for word in words
            if word not in STOP_WORDS
        ]
        return " ".join([text, *self.others["adverb"], *left]).rstrip()

    def _next(self, kind: str) -> str:
        return self.others[kind].popleft() if self.others[kind] else ""

    def _pick(self, choices: tuple[str, ...]) -> str:
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & MASK
        return choices[(self.state >> 33) % len(choices)]


def _is_participle(word: Word) -> bool:
    return word.kind == "ing" or (word.kind == "past" and word.text.endswith(REGULAR))


def _article(article: str, following: str) -> str:
    return "an" if article == "a" and following[0].lower() in "aeiou" else article


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
