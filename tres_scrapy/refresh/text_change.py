"""What changed in the texts of pages: the old and the new text side by side."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final, NamedTuple

from tres_scrapy.refresh.main_text import MINOR, OTHER
from tres_scrapy.url.canonical import canonicalise

SHOWN: Final = 30  # newest changes
WORDS: Final = 3_000  # of a text that are compared
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
    """A change of a page; without `places` if its old text is not known."""

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
            for visit in _lines(output)
            if visit.get("change") in {OTHER, MINOR} and _time(visit) >= since
        ),
        maxlen=SHOWN,
    )
    wanted, urls = set(found), {url for url, _ in found}
    texts = {
        url: str(page["text"])
        for page in _lines(collection)
        if page.get("text") and (url := canonicalise(str(page["url"]))) in urls
    }
    changes = []
    for visit in _lines(output):
        url, text = visit["url"], visit.get("text")
        if (url, visit.get("fetched_at")) in wanted:
            changes.append(_change(visit, texts.get(url)))
        if text and url in urls:
            texts[url] = text
    return changes[::-1]


def side_by_side(old: str, new: str) -> list[Passage]:
    """Return the places where two texts differ, word by word, with a few words around them."""
    before, after = old.split()[:WORDS], new.split()[:WORDS]
    places = []
    for group in SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(CONTEXT):
        place = Passage([], [])
        for kind, a, b, c, d in group:
            for side, words in ((place.old, before[a:b]), (place.new, after[c:d])):
                if words:
                    side.append(Piece(" ".join(words), kind != "equal"))
        places.append(place)
    return places


def _change(visit: dict[str, Any], old: str | None) -> PageChange:
    places = [] if old is None else side_by_side(old, str(visit.get("text")))
    return PageChange(
        *(visit["url"], str(visit.get("title")), visit["change"], visit["fetched_at"]),
        *(places[:PLACES], max(0, len(places) - PLACES)),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file that are objects with a `url`; nothing if there is no file."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                row = json.loads(line)
            except ValueError:  # a line of another program
                continue
            if isinstance(row, dict) and isinstance(row.get("url"), str):
                yield row


def _time(visit: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(visit.get("fetched_at"))).timestamp()
    except ValueError:
        return 0.0
