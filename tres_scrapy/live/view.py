"""The data of the live page as JSON; the page itself escapes text from the web."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tres_scrapy.frontier.feature import TABLE
from tres_scrapy.live.answering import Answering
from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import Fetch

RECENT_PAGES: Final = 40  # the newest pages in an answer
FOUND_PAGES: Final = 20  # relevant pages in an answer
DRAWING_COST: Final = 30  # figures are drawn again after this many times the drawing time,
DRAWING_PERIOD: Final = 3.0  # and at least this many seconds


class View:
    """Reads the record of a crawl; call it from one thread only."""

    def __init__(
        self, path: Path, answering: Answering, clock: Callable[[], float] = monotonic
    ) -> None:
        self._path = path
        self._answering = answering
        self._clock = clock
        self._record: Record | None = None
        self._figures = -1, b""  # the step they show, and their JSON
        self._due = clock()

    @property
    def record(self) -> Record:
        """The record, opened at the first use; raise RecordError if it cannot be read."""
        if self._record is None:
            self._record = Record(self._path)
        return self._record

    def close(self) -> None:
        """Close the record."""
        if self._record is not None:
            self._record.close()

    def state(self, now: dict[str, Any], after: int) -> bytes:
        """Return `now` and the pages fetched after a step, newest first, as JSON."""
        record = self.record
        with record.moment():
            found = [page for page in record.last(RECENT_PAGES) if page.step > after]
            pages = self._as_dicts(found)
        asked = len(self._answering.questions())
        last = pages[0]["step"] if pages else after
        return _json(now | {"recent": pages, "step": last, "asked": asked})

    def figures(self, shown: int) -> bytes | None:
        """Return the charts as JSON, some seconds old; None if step `shown` has the same."""
        if self._clock() >= self._due:
            self._draw()
        step, figures = self._figures
        return None if step == shown else figures

    def page(self, step: int) -> bytes | None:
        """Return link, features, rivals and path of the page fetched at a step, or None."""
        record = self.record
        with record.moment():
            page = next(iter(record.last(1, before=step + 1)), None)
            if page is None or page.step != step:
                return None
            rivals = [rival._asdict() for rival in record.rivals(step)]
            trail = self._as_dicts(record.trail(page)[:-1])
        features = [
            {"name": each.label, "meaning": each.meaning, "value": page.x[each.name]}
            for each in TABLE
        ]
        link = [{"text": part.label, "adds": part.adds} for part in page.link]
        return _json({"link": link, "features": features, "rivals": rivals, "trail": trail[-8:]})

    def relevant(self, before: int, words: str) -> bytes:
        """Return relevant pages that contain all the words, the newest before a step, as JSON.

        A `before` of -1 begins with the newest of all.
        """
        last = None if before < 0 else before
        with self.record.moment():
            found = self.record.relevant(FOUND_PAGES, words=words, before=last)
            return _json({"pages": self._as_dicts(found)})

    def questions(self) -> bytes:
        """Return the pages about which the topic asks, as JSON."""
        return _json({"questions": self._answering.questions()})

    def answer(self, url: str, *, relevant: bool) -> bytes:
        """Take an answer and return what was done, as JSON; raise ControlError if it is refused."""
        return _json({"said": self._answering.answer(self.record, url, relevant=relevant)})

    def _as_dicts(self, pages: Iterable[Fetch]) -> list[dict[str, Any]]:
        given = self._answering.given()
        return [_as_dict(self.record, page, given) for page in pages]

    def _draw(self) -> None:
        start = self._clock()
        record = self.record
        with record.moment():
            step = max((page.step for page in record.last(1)), default=0)
            found = [
                {"name": c.name, "title": c.title, "note": c.note, "figure": c.as_figure()}
                for c in charts(record)
            ]
        self._figures = step, _json({"step": step, "charts": found})
        end = self._clock()
        self._due = end + max(DRAWING_PERIOD, DRAWING_COST * (end - start))


def _as_dict(record: Record, page: Fetch, given: Mapping[str, bool]) -> dict[str, Any]:
    url = page.final_url or page.url
    return {
        "step": page.step,
        "time": page.time,
        "url": url,
        "title": page.title,
        "text": page.text,
        "anchor": page.anchor,
        "domain": page.domain,
        "outcome": page.outcome,
        "probability": page.probability,
        "scores": record.scores(page),
        "chosen": page.chosen,
        "leaf": page.leaf,
        "q": page.q_value,
        "why": record.why(page),
        "answer": given.get(url),
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
