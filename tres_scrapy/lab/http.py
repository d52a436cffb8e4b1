"""A crawl over HTTP: `scrapy crawl tres` in another process, counted from the log of the web."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from tres_scrapy.extensions.ending import FRONTIER_EXHAUSTED, PAGE_LIMIT
from tres_scrapy.lab.result import Result, Run, Series
from tres_scrapy.lab.webs.web import Answer, Count

MARKS: Final = 200  # points of a series
POLL: Final = 0.5  # seconds between two looks at the log
FINISH: Final = re.compile(r"'finish_reason': '(\w+)'")


class CrawlError(RuntimeError):
    """Raised if a crawl breaks off; the message says why in one line."""


def crawl_served(run: Run, settings: Mapping[str, str], progress: Callable[[int], None]) -> Result:
    """Run Scrapy and return the counts of the web; raise CrawlError if the crawl breaks off."""
    with TemporaryDirectory(prefix="tres-bench-") as folder:
        log, said = Path(folder, "web.jsonl"), Path(folder, "crawl.log")
        own = {"TRES_WEB_LOG": log, "TRES_OUTPUT": Path(folder, "pages.jsonl"), "LOG_LEVEL": "INFO"}
        tally = Tally(log, max(1, run.pages // MARKS))
        with said.open("wb") as file:
            process = subprocess.Popen(  # noqa: S603 - our own command
                _command({**settings, **own}),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=os.environ | _environment(),
            )
        try:
            while _runs(process):
                progress(tally.read())
        finally:
            process.kill()
            process.wait()
        progress(tally.read())
        return tally.result(run, exhausted=_finish(said) == FRONTIER_EXHAUSTED)


def _command(settings: Mapping[str, object]) -> list[str]:
    command = [sys.executable, "-m", "scrapy", "crawl", "tres"]
    for name, value in settings.items():
        command += ["-s", f"{name}={value}"]
    return command


def _environment() -> dict[str, str]:
    """Return environment variables with which TRES starts in any folder or Scrapy project."""
    return {
        "PYTHONPATH": os.pathsep.join(sys.path),
        "SCRAPY_SETTINGS_MODULE": "tres_scrapy.settings",
    }


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """Wait a moment and return whether a process still runs."""
    try:
        process.wait(POLL)
    except subprocess.TimeoutExpired:
        return True
    return False


def _finish(path: Path) -> str:
    """Return the finish reason from the log; raise CrawlError if the crawl did not complete."""
    text = path.read_text(encoding="utf-8", errors="replace")
    found = FINISH.findall(text)
    if not found or found[-1] not in {PAGE_LIMIT, FRONTIER_EXHAUSTED}:
        last = text.strip().splitlines() or ["it ended without a log"]
        error = CrawlError(f"finish reason {found[-1]}" if found else last[-1])
        error.add_note(text)  # the log, for the traceback
        raise error
    return str(found[-1])


class Tally:
    """Counts of a crawl, read from the log of the web while it grows."""

    def __init__(self, log: Path, every: int) -> None:
        self.count = Count()
        self.series = Series()
        self._log = log
        self._every = every
        self._offset = 0
        self._times: tuple[float, float] | None = None

    def read(self) -> int:
        """Read what has been added to the log and return the new pages."""
        before = self.count.pages
        if self._log.exists():
            with self._log.open("rb") as file:
                file.seek(self._offset)
                for line in file:
                    if line.endswith(b"\n"):  # else the line is incomplete
                        self._offset += len(line)
                        self._add(json.loads(line))
        return self.count.pages - before

    def _add(self, row: dict[str, Any]) -> None:
        first, _ = self._times or (row["time"], None)
        self._times = first, row["time"]
        before, relevant = self.count.pages, self.count.relevant
        answer = Answer(row["status"], b"", (), row["kind"], row["relevant"], row["site_kind"])
        self.count.add(row["url"], answer, row["time"])
        if self.count.relevant > relevant:
            self.series.found.append(self._fetches)
        if self.count.pages > before and self.count.pages % self._every == 0:
            self._mark()

    @property
    def _fetches(self) -> int:
        return self.count.fetches - self.count.by_kind["robots"]

    def _mark(self) -> None:
        self.series.pages.append(self.count.pages)
        self.series.relevant.append(self.count.relevant)
        self.series.domains.append(len(self.count.domains))

    def result(self, run: Run, *, exhausted: bool) -> Result:
        """Return the counts of a finished crawl as the result of a run."""
        if self.count.pages % self._every:
            self._mark()
        first, last = self._times or (0.0, 0.0)
        return Result(
            run,
            self.count.pages,
            self.count.relevant,
            len(self.count.domains),
            self._fetches,
            exhausted,
            round(last - first, 1),
            self.series,
        )
