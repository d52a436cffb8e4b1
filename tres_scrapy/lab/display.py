"""The progress of a benchmark: a bar on a terminal, otherwise one line per run."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from tqdm import tqdm

from tres_scrapy.lab.result import Result, Run
from tres_scrapy.lab.worker import RunFailure
from tres_scrapy.url.message import plural


class Display:
    """Show the number of pages fetched, the rate, and finished runs."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._left = Counter({run: run.pages for run in runs})
        self._runs = len(runs)
        self._ended = 0
        self._bar = tqdm(
            total=self._left.total(),
            unit=" pages",
            smoothing=0.05,  # average the rate over minutes, not over the last second
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def __enter__(self) -> Self:
        self._count()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def advance(self, run: Run, pages: int) -> None:
        """Show that a run has fetched more pages."""
        self._left[run] -= pages
        self._bar.update(pages)

    def finish(self, result: Result) -> None:
        """Show the result of a finished run."""
        self._end(result.run)
        if self._bar.disable:
            print(_line(result), flush=True)
        else:
            self._bar.set_postfix_str(_brief(result))

    def fail(self, failure: RunFailure, trace: Path) -> None:
        """Show why a run failed, and the file with the traceback."""
        self._end(failure.run)
        with tqdm.external_write_mode(file=sys.stderr):
            said = f"{failure.run.name} failed: {failure.reason} (see {trace})"
            print(said, file=sys.stderr, flush=True)

    def _end(self, run: Run) -> None:
        """Count the pages that a run did not fetch as done."""
        self._ended += 1
        self._bar.update(self._left.pop(run, 0))
        self._count()

    def _count(self) -> None:
        self._bar.set_description(f"{self._ended} of {self._runs} runs")


def _line(result: Result) -> str:
    run, ran_out = result.run, ", links ran out" if result.exhausted else ""
    start = f" from {run.start}" if run.start else ""
    return (
        f"{run.policy:13} MAX {run.cap:5} {run.topic:9} seed {run.seed}{start}: harvest "
        f"{100 * result.harvest:5.1f} %, {result.domains} {plural(result.domains, 'domain')}, "
        f"{result.pages} {plural(result.pages, 'page')}{ran_out}, "
        f"{result.seconds:.0f} s"
    )


def _brief(result: Result) -> str:
    run = result.run
    return f"{run.policy} MAX {run.cap} {run.topic} {run.seed}: {100 * result.harvest:.1f} %"
