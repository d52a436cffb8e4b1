"""The item of a visit, which goes to the pipelines, and the new links in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tres_scrapy.refresh.main_text import SAME, Copy, Reading
from tres_scrapy.refresh.request import PageAnswer, RefreshRequest
from tres_scrapy.refresh.store import PageRow
from tres_scrapy.refresh.verdict import ChangeVerdict


@dataclass(slots=True)
class VisitItem:
    """What a visit found."""

    url: str
    change: str
    visit: int
    status: int | None = None
    final_url: str = ""
    title: str = ""
    text: str = ""
    fetched_at: str = ""  # ISO 8601
    age: float = 0.0  # seconds since the previous copy was made
    changed_at: str = ""  # time of the last change found, "" without a change
    old_hash: str = ""
    new_hash: str = ""
    distance: int | None = None  # lanes of 256 in which the texts differ
    visits: int = 0
    changes: int = 0
    error: str = ""
    found: list[str] = field(default_factory=list)


def item_for(
    request: RefreshRequest, answer: PageAnswer, verdict: ChangeVerdict, row: PageRow, now: float
) -> VisitItem:
    """Return the item of a visit after its page's row was updated."""
    item = VisitItem(row.url, verdict.change, request.visit, answer.status, answer.url)
    item.fetched_at, item.changed_at = _iso(now), _iso(row.last_change)
    item.age, item.distance = verdict.age, verdict.distance
    item.old_hash, item.new_hash = _hex(verdict.before), _hex(row.copy)
    item.visits, item.changes = row.visits, row.changes
    item.error = answer.error
    if answer.reading is not None and not verdict.failed and verdict.change != SAME:
        item.title, item.text = answer.reading.title, answer.reading.text
    return item


def item_of(text: str) -> VisitItem:
    """Return an item from the JSON text that the store kept."""
    values: dict[str, Any] = json.loads(text)
    return VisitItem(**values)


class SeenLinks:
    """Finds the links of a page that no page had before."""

    def __init__(self, hashes: set[int]) -> None:
        self._hashes = hashes

    def take(self, reading: Reading) -> dict[int, str]:
        """Return the new links of a page by hash; from now on they count as seen."""
        hashes = {_hash(url): url for url, _ in reading.links}
        new = {each: url for each, url in hashes.items() if each not in self._hashes}
        self._hashes |= new.keys()
        return new


def written(path: Path) -> set[tuple[str, str]]:
    """Return URL and time of each visit in an output file; skip lines that are no visits."""
    visits: set[tuple[str, str]] = set()
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    row = json.loads(line)
                    visits.add((str(row["url"]), str(row["fetched_at"])))
                except (ValueError, KeyError, TypeError):  # a line of another program
                    continue
    return visits


def _iso(seconds: float | None) -> str:
    return "" if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat()


def _hex(copy: Copy | None) -> str:
    return copy.hash.hex() if copy is not None else ""


def _hash(url: str) -> int:
    digest = blake2b(url.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
