"""What changed in the texts of pages: the old and the new text side by side."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path
from time import process_time
from typing import Any, Final, NamedTuple

from tres_scrapy.refresh.collection import lines_of
from tres_scrapy.refresh.main_text import MINOR, OTHER
from tres_scrapy.url.canonical import canonicalise

SHOWN: Final = 30  # newest changes
WORDS: Final = 500  # of a text that are compared, between common head and tail
SECONDS: Final = 2.0  # of processor time for all texts: the reactor waits meanwhile
CONTEXT: Final = 10  # words shown on each side of a difference
PLACES: Final = 12  # of a page that are shown


class Piece(NamedTuple):
    """A part of a text, and whether the other text lacks it."""

    text: str
    differs: bool


class Passage(NamedTuple):
    """The words around a difference in the old and in the new text."""

    old: list[Piece]
    new: list[Piece]


@dataclass(frozen=True, slots=True)
class PageChange:
    """A change of a page; without `places` if its old text is not known or time is up."""

    url: str
    title: str
    change: str
    fetched_at: str
    places: list[Passage]
    more: int = 0  # places that are left out


def page_changes(output: Path, collection: Path, since: float) -> list[PageChange]:
    """Return the newest changes since a time, the newest first.

    The texts are those of the visits in the output and of the crawl in the collection.
    """
    found = deque(
        (
            (visit["url"], visit["fetched_at"])
            for visit in lines_of(output)
            if visit.get("change") in {OTHER, MINOR} and _time(visit) >= since
        ),
        maxlen=SHOWN,
    )
    wanted, urls = set(found), {url for url, _ in found}
    texts = {
        url: str(page["text"])
        for page in lines_of(collection)
        if page.get("text") and (url := canonicalise(str(page["url"]))) in urls
    }
    pairs = []
    for visit in lines_of(output):
        url, text = visit["url"], visit.get("text")
        if (url, visit.get("fetched_at")) in wanted:
            pairs.append((visit, texts.get(url)))
        if text and url in urls:
            texts[url] = text
    end = process_time() + SECONDS
    return [_change(visit, old if process_time() < end else None) for visit, old in pairs[::-1]]


def side_by_side(old: str, new: str) -> list[Passage]:
    """Return the places where two texts differ, word by word, with a few words around them.

    At most 500 words of each are compared, from shortly before the first difference.
    """
    before, after = _middles(old.split(), new.split())
    places = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        place = Passage([], [])
        for kind, a, b, c, d in group:
            for side, words in ((place.old, before[a:b]), (place.new, after[c:d])):
                if words:
                    side.append(Piece(" ".join(words), kind != "equal"))
        places.append(place)
    return places


def _middles(before: list[str], after: list[str]) -> tuple[list[str], list[str]]:
    """Return the words of two texts without their common head and tail, but with some context.

    The comparison takes up to the cube of the number of words.
    """
    head = max(0, _shared(before, after) - CONTEXT)
    before, after = before[head:], after[head:]
    tail = max(0, _shared(before[::-1], after[::-1]) - CONTEXT)
    return before[: len(before) - tail][:WORDS], after[: len(after) - tail][:WORDS]


def _shared(before: list[str], after: list[str]) -> int:
    """Return how many words at the beginning of two texts are the same."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))


def _change(visit: dict[str, Any], old: str | None) -> PageChange:
    places = [] if old is None else side_by_side(old, visit.get("text") or "")
    return PageChange(
        visit["url"],
        visit.get("title") or "",
        visit["change"],
        visit["fetched_at"],
        places[:PLACES],
        max(0, len(places) - PLACES),
    )


def _time(visit: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(visit.get("fetched_at"))).timestamp()
    except ValueError:
        return 0.0
