"""What the live page shows, as plain data: the page escapes the texts of the web in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tres_scrapy.report.figure import NAMES, pictures
from tres_scrapy.report.record import Page, Record
from tres_scrapy.report.rule import MEANINGS

RECENT: Final = 40  # pages told at a time, the newest
COST: Final = 30  # figures are drawn again after so many times as long as it took,
PERIOD: Final = 3.0  # and so many seconds at least


class View:
    """Reads the record of a crawl in one thread, which must be the same at each call."""

    def __init__(self, path: Path, clock: Callable[[], float] = monotonic) -> None:
        self._path = path
        self._clock = clock
        self._record: Record | None = None
        self._figures = -1, b""  # of which step, and what they are
        self._due = clock()

    @property
    def record(self) -> Record:
        """The record, opened when it is first needed; RecordError: it cannot be read."""
        if self._record is None:
            self._record = Record(self._path)
        return self._record

    def close(self) -> None:
        """Close the record."""
        if self._record is not None:
            self._record.close()

    def state(self, now: dict[str, Any], after: int) -> bytes:
        """Return how the crawl goes and the pages booked after a step, the newest first."""
        record = self.record
        with record.moment():
            found = [page for page in record.last(RECENT) if page.step > after]
            pages = [_told(record, page) for page in found]
        return _json(now | {"recent": pages, "step": pages[0]["step"] if pages else after})

    def figures(self, shown: int) -> bytes | None:
        """Return the figures, as of a moment ago; None if these are those of step `shown`."""
        if self._clock() >= self._due:
            self._draw()
        step, figures = self._figures
        return None if step == shown else figures

    def page(self, step: int) -> bytes | None:
        """Return what more is known of the page booked at a step, None if there is none."""
        record = self.record
        with record.moment():
            page = next(iter(record.last(1, before=step + 1)), None)
            if page is None or page.step != step:
                return None
            rivals = [rival._asdict() for rival in record.rivals(step)]
            trail = [_told(record, before) for before in record.trail(page)[:-1]]
        features = [
            {"name": NAMES[name], "meaning": MEANINGS[name], "value": value}
            for name, value in page.x.items()
        ]
        return _json({"features": features, "rivals": rivals, "trail": trail[-8:]})

    def _draw(self) -> None:
        start = self._clock()
        record = self.record
        with record.moment():
            step = max((page.step for page in record.last(1)), default=0)
            found = [
                {"name": p.name, "title": p.title, "note": p.note, "figure": p.as_figure()}
                for p in pictures(record)
            ]
        self._figures = step, _json({"step": step, "pictures": found})
        end = self._clock()
        self._due = end + max(PERIOD, COST * (end - start))


def _told(record: Record, page: Page) -> dict[str, Any]:
    return {
        "step": page.step,
        "time": page.time,
        "url": page.final_url or page.url,
        "title": page.title,
        "anchor": page.anchor,
        "domain": page.domain,
        "outcome": page.outcome,
        "probability": page.probability,
        "chosen": page.chosen,
        "leaf": page.leaf,
        "q": page.q_value,
        "why": record.why(page),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
