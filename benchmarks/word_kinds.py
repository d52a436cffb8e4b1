"""Sort the words of the synthetic web by part of speech: single words, never sentences.

    pip install lemminflect
    python benchmarks/word_kinds.py DATA_FOLDER

A dictionary of inflections says what a word can be; the words before and after it in the documents
say what it mostly is. Each word is written as it mostly stands inside sentences: "NASA", "butter".
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from pathlib import Path

from lemminflect import getAllInflections, getAllLemmas
from word_tables import documents

from tres_scrapy.lab.webs.vocabulary import tables
from tres_scrapy.page.text import STOP_WORDS

OUTPUT = Path(__file__).parents[1] / "tres_scrapy" / "webs" / "kinds.json"
TOKEN = re.compile(r"[A-Za-zÀ-ÖØ-öø-ÿ]+|[.,;:!?()\"]")
NAME_SHARE, VERB_SHARE, HEAD_SHARE = 0.6, 0.5, 0.4
PEOPLE = re.compile(r"[a-z](ish|ese|an|ic|ench|eek|utch|orse|iss)$")
NEIGHBOURS = {
    "opener": "the a an this his her its their our my your some no every each these",
    "subject": "to will would can could they we you i not should may must who he she",
    "joint": "of in for with by from on at",
}
OPENERS, SUBJECTS, JOINTS = (frozenset(row.split()) for row in NEIGHBOURS.values())
# What no dictionary of inflections lists.
CLOSED = {
    "many": "many several various numerous five six seven eight nine ten four three two hundreds",
    "each": "another",
    "adverb": "often still even never later today thus instead almost always sometimes already "
    "together rather ago away soon perhaps quite maybe back far well however yesterday tomorrow "
    "again ahead apart aside forever twice indeed otherwise nevertheless meanwhile elsewhere "
    "somewhere anyway least else",
    "preposition": "near around among along across behind beyond toward towards throughout despite "
    "beneath beside besides inside outside like unlike per via above amid concerning regarding",
    "joint": "although unless whereas",
    "pronoun": "something everything nothing anything someone anyone everyone others",
    "stray": "th st de la en al org com www http https ii iii nd rd mr mrs dr didn doesn don isn "
    "wasn couldn wouldn hadn aren weren haven hasn shouldn em et van von non pre mid re ll ve",
}


class Word:
    """What the documents say about a word: its spellings and its neighbours."""

    def __init__(self) -> None:
        self.spellings: Counter[str] = Counter()
        self.noun = self.verb = self.head = self.attribute = 0

    def meet(self, before: str, spelling: str, after: str) -> None:
        """Count one occurrence."""
        if before not in {"", ".", "!", "?", ":", '"'}:
            self.spellings[spelling] += 1
        self.verb += before in SUBJECTS
        if before in OPENERS or before in JOINTS:
            self.noun += 1
            is_head = not after[:1].isalpha() or after in STOP_WORDS
            self.head += is_head
            self.attribute += not is_head

    @property
    def is_verb(self) -> bool:
        """Whether it follows subjects more often than it opens a phrase."""
        return self.verb > VERB_SHARE * (self.verb + self.noun)

    @property
    def is_head(self) -> bool:
        """Whether it ends phrases rather than standing before a noun."""
        return self.head >= HEAD_SHARE * (self.head + self.attribute)


def observe(data: Path, known: set[str]) -> dict[str, Word]:
    """Return what the documents say about each known word."""
    words: dict[str, Word] = defaultdict(Word)
    for _, text in documents(data):
        tokens = ["", *TOKEN.findall(text), ""]
        for place in range(1, len(tokens) - 1):
            if (word := tokens[place].lower()) in known:
                before, after = tokens[place - 1].lower(), tokens[place + 1].lower()
                words[word].meet(before, tokens[place], after)
    return words


def kind_of(word: str, seen: Word, spelling: str, known: set[str]) -> str:
    """Return the kind of a word."""
    forms = set(getAllLemmas(word))
    if spelling != word and not forms:
        return "adjective" if PEOPLE.search(spelling) and not seen.is_head else "name"
    if "ADV" in forms and (word.endswith("ly") or forms == {"ADV"}) and "ADJ" not in forms:
        return "adverb"
    if "VERB" in forms and (found := _verb(word, forms, seen)):
        return found
    if "ADJ" in forms and ("NOUN" not in forms or not seen.is_head):
        return "adjective"
    return _noun(word, forms, known)


def _verb(word: str, forms: set[str], seen: Word) -> str:
    """Return the form of a verb, "" if the word is more often something else."""
    tags = {
        tag
        for lemma in getAllLemmas(word).get("VERB", ())
        for tag, spellings in getAllInflections(lemma).items()
        if word in spellings
    }
    if "VBG" in tags:
        return "" if "NOUN" in forms and seen.is_head else "ing"
    if tags & {"VBD", "VBN"} and {word} != set(getAllLemmas(word)["VERB"]):  # "cut" can be both
        return "" if "ADJ" in forms and "VBN" not in tags else "past"
    if seen.is_verb or not forms & {"NOUN", "ADJ"}:
        return "singular verb" if "VBZ" in tags else "verb"
    return ""


def _noun(word: str, forms: set[str], known: set[str]) -> str:
    lemmas = getAllLemmas(word).get("NOUN", ())
    plural = any(lemma != word and word in _plurals(lemma) for lemma in lemmas)
    if plural or (not forms and word.endswith("s") and not word.endswith("ss")):
        return "plural"
    countable = any(each in known for each in _plurals(word) if each != word)
    return "noun" if countable else "mass"


def _plurals(word: str) -> tuple[str, ...]:
    found: tuple[str, ...] = getAllInflections(word).get("NNS", ())
    return found


def kinds(data: Path) -> dict[str, list[str]]:
    """Return the words of each kind in alphabetical order."""
    known = {word for table in tables().values() for word in table}
    seen = observe(data, known)
    closed = {word: kind for kind, words in CLOSED.items() for word in words.split()}
    result: dict[str, list[str]] = defaultdict(list)
    for word in sorted(known - STOP_WORDS):
        spellings = seen[word].spellings
        spelling, times = (spellings.most_common(1) or [(word, 1)])[0]
        if spelling != word and times < NAME_SHARE * spellings.total():
            spelling = word
        kind = closed.get(word) or kind_of(word, seen[word], spelling, known)
        is_name = kind in {"name", "adjective"} or spelling.isupper()
        result[kind].append(spelling if is_name else word)
    return result


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python benchmarks/word_kinds.py DATA_FOLDER")
    made = {kind: " ".join(words) for kind, words in kinds(Path(sys.argv[1])).items()}
    OUTPUT.write_text(json.dumps(made, ensure_ascii=False, indent=0), encoding="utf-8")
    print({kind: len(words.split()) for kind, words in made.items()})
