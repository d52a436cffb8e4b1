"""Answers, yes or no, that a person gives about the pages of a crawl."""

from __future__ import annotations

import json
import logging
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Self

from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.live.steering import ControlError
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.topic.topic_folder import add_answers, read_answers
from tres_scrapy.url.message import TresError, plainly, printable

KEPT: Final = 200  # newest pages whose texts are held
LONGEST: Final = 20_000  # characters of a text
NOT_FETCHED: Final = "Not a page that this crawl has fetched"
ANSWERS: Final = ".answers.txt"  # of the file beside the record
NOTED: Final = "Noted for a later training, `tres train --answers`, in"
TEXTS: Final = ".fetched.jsonl"  # the file of texts; `tres train` fetches what is not in it

logger = logging.getLogger(__name__)


class Answering:
    """Writes answers to a file, and the texts of their pages beside it for a later training.

    `note` is called as pages are fetched, everything else in the thread of the live page. `effect`
    says what becomes of an answer. A topic that learns has `asked`, the pages that it asks about,
    and `known`, the addresses of pages that it can learn from, which raises TresError for others.
    Answers in the file `others` count too, unless `file` has the same URL.
    """

    def __init__(
        self,
        file: Path,
        effect: str,
        asked: Callable[[], list[dict[str, Any]]] = list,
        known: Callable[[Iterable[str]], list[str]] | None = None,
        others: Path | None = None,
    ) -> None:
        self._file = file
        self._files = [*([others] if others else []), file]
        self._effect = effect
        self._asked = asked
        self._known = known
        self._texts: dict[str, tuple[str, str]] = {}
        self._given: dict[str, bool] = {}
        self._stamps: list[int | None] = [None for _ in self._files]

    @classmethod
    def beside(cls, record: Path) -> Self:
        """Return one for a topic that does not learn, with a file beside the record."""
        return cls(record.with_suffix(ANSWERS), NOTED)

    def note(self, url: str, title: str, text: str) -> None:
        """Hold the text of a page for a while."""
        self._texts[url] = title, text[:LONGEST]
        if len(self._texts) > KEPT:
            del self._texts[next(iter(self._texts))]

    def given(self) -> Mapping[str, bool]:
        """Return whether each answered URL is relevant."""
        stamps = [each.stat().st_mtime_ns if each.exists() else None for each in self._files]
        if stamps != self._stamps:
            self._stamps = stamps
            try:
                found = [read_answers(each, _warn) for each in self._files]
                self._given = dict(ChainMap(*reversed(found)))  # the last file counts
            except TresError as error:
                _warn(str(error))
        return self._given

    def questions(self) -> list[dict[str, Any]]:
        """Return url, title, text and probability of the pages asked about and not answered."""
        try:
            asked = self._asked()
        except (OSError, ValueError):  # no page is fetched yet
            return []
        given = self.given()
        return [each for each in asked if each["url"] not in given]

    def answer(self, record: Record, url: str, *, relevant: bool) -> str:
        """Write an answer; raise ControlError if the crawl has not fetched the URL as a page."""
        try:
            if self._known is not None:
                (url,) = self._known([url])
            elif (page := record.find(url)) is None or page.kind != PAGE:
                raise ControlError(NOT_FETCHED)
            if url.split() != [url]:  # else it would be more than one line
                raise ControlError(NOT_FETCHED)
            if (found := self._texts.get(url)) is not None:  # `note` may drop it meanwhile
                title, text = found
                with self._file.with_suffix(TEXTS).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"url": url, "title": title, "text": text}) + "\n")
            add_answers(self._file, {url: relevant})
        except RecordError:
            raise
        except TresError as error:
            raise ControlError(str(error)) from None
        except OSError as error:
            raise ControlError(
                f"The answer cannot be written: {plainly(error, named=True)}"
            ) from None
        logger.info("Live page: answer %s about %s", "yes" if relevant else "no", printable(url))
        return f"{self._effect} {self._file}."


def _warn(line: str) -> None:
    logger.warning("Live page: %s", line)
