"""The pages of a finished crawl, read from JSON lines of TRES or of any other program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tres_scrapy.refresh.main_text import Copy, copy_of
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError, plainly

LEAST_WEIGHT = 0.01  # every page of the collection counts a little


@dataclass(frozen=True, slots=True)
class KnownPage:
    """A page of the collection: its importance and its copy, if the crawl kept one."""

    url: str
    weight: float
    fetched: float | None  # seconds since 1970
    copy: Copy | None


def read_collection(path: Path) -> Iterator[KnownPage]:
    """Yield each page once; raise TresError if the file or one of its lines is wrong.

    A line is a JSON object with `url`. `title`, `text`, `fetched_at` and `weight`, or else
    `probability`, are used if present.
    """
    seen: set[str] = set()
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if (
                    line.strip()
                    and (known := _known(line, f"{path}, line {number}")).url not in seen
                ):
                    seen.add(known.url)
                    yield known
    except (OSError, UnicodeDecodeError) as error:
        raise TresError(f"{path} cannot be read: {plainly(error, named=True)}") from None
    if not seen:
        raise TresError(f"{path} holds no page: each line must be a JSON object with a url")


def _known(line: str, place: str) -> KnownPage:
    try:
        row = json.loads(line)
        url = canonicalise(str(row["url"]))
    except (ValueError, KeyError, TypeError):
        url = None
    if url is None:
        raise TresError(f"{place}: {line.strip()[:80]!r} must be a JSON object with an http(s) url")
    text = row.get("text")
    copy = copy_of(str(row.get("title") or ""), str(text), loose=True) if text else None
    return KnownPage(url, _weight(row, place), _time(row, place), copy)


def _weight(row: dict[str, Any], place: str) -> float:
    value = row.get("weight", row.get("probability"))
    if value is None:
        return 1.0
    if not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise TresError(f"{place}: weight {value!r} must be a number of 0 or more")
    return max(float(value), LEAST_WEIGHT)


def _time(row: dict[str, Any], place: str) -> float | None:
    value = row.get("fetched_at")
    if value is None:
        return None
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        raise TresError(f"{place}: fetched_at {value!r} must be an ISO 8601 time") from None


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
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
