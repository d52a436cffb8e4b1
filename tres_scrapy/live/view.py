"""The data of the live page: the numbers at its top, and what it reads from the record."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Final

from tres_scrapy.config.config import Config
from tres_scrapy.crawl.outlook import FIGURES
from tres_scrapy.frontier.feature import TABLE
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.state import Monitor, failures
from tres_scrapy.live.steering import Steering
from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.record import NO_STEP, Record
from tres_scrapy.report.share import holder_of, sentence
from tres_scrapy.run.run_file import Fetch

RECENT_PAGES: Final = 40  # the newest pages in an answer
FOUND_PAGES: Final = 20  # relevant pages in an answer
DRAWING_COST: Final = 30  # figures are drawn again after this many times the drawing time,
DRAWING_PERIOD: Final = 3.0  # and at least this many seconds
WATCHED: Final = 5.0  # seconds since its last question that a page counts as open
FAREWELL: Final = 3.0  # seconds in which an open page asks for the end of the crawl
SENDING: Final = 0.3  # seconds for the answer
TICK: Final = 0.05  # seconds between two looks at whether it has asked


class PageState:
    """Collects the numbers of a crawl that `look` returns when a page asks."""

    def __init__(self, config: Config, control: Steering, look: Callable[[], Monitor]) -> None:
        self._fixed = {"topic": config.topic, "policy": config.policy}
        self._control = control
        self._look = look
        self._started = monotonic()
        self._asked = -WATCHED  # when a page last asked
        self._ended = 0.0
        self._end: dict[str, Any] | None = None

    def __call__(self) -> dict[str, Any]:
        """Return the numbers by name."""
        monitor = self._look()
        self._asked = monotonic()
        state = monitor.state
        figures, cap = state.figures(), self._control.cap
        if state.count is None:
            more: dict[str, Any] = {
                "phase": next((each.get("phase") for each in state.shards.values()), None)
            }
        else:
            more = {"phase": f"trees of {state.count} shards", "shards": state.rows()}
        return {
            **self._fixed,
            **more,
            "status": self._control.state,
            "offline": bool(state.sum("offline")),
            "opens_at": state.opens_at,
            "end": self._end,
            "warnings": state.warnings(),
            "pages": state.pages,
            "limit": state.limit,
            "relevant": state.sum("relevant_pages"),
            "harvest": state.harvest_rate,
            "domains": state.sum("relevant_domains"),
            "frontier": state.sum("frontier_size"),
            "reach": [figures[name] for name in FIGURES] if FIGURES[0] in figures else None,
            "leaves": figures.get("leaves"),
            "failures": failures(figures),
            "under_way": state.sum("under_way"),
            "rate": monitor.recent,
            "left": monitor.left,
            "elapsed": self._asked - self._started,
            "max": None if cap is None else str(cap),
        }

    def end(self, reason: str, files: Sequence[object]) -> None:
        """Tell pages from now on why the crawl ended and what files it left."""
        self._end, self._ended = {"reason": reason, "files": [*map(str, files)]}, monotonic()

    @property
    def is_told(self) -> bool:
        """Whether no open page still has to ask for the end of the crawl."""
        now = monotonic()
        if now - self._ended >= FAREWELL:
            return True
        if self._asked > self._ended:
            return now - self._asked >= SENDING
        return self._ended - self._asked >= WATCHED


class View:
    """Reads the record of a crawl as JSON; call it from one thread only.

    The page itself escapes text from the web.
    """

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
            pages, holder = self._as_dicts(found), holder_of(record)
        asked = len(self._answering.questions())
        last = pages[0]["step"] if pages else after
        held = None if holder is None else {**holder._asdict(), "said": sentence(holder)}
        return _json(now | {"recent": pages, "step": last, "asked": asked, "holder": held})

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
        last = NO_STEP if before < 0 else before
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
