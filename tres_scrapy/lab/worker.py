"""Worker processes: each keeps one world in memory for all its runs on that world."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self

from tqdm import tqdm

from tres_scrapy.lab.condition import Crawl
from tres_scrapy.lab.result import Result, Run, Shares, WorldKey, code_version, world_of
from tres_scrapy.url.message import plural, reason

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess


_context = get_context("spawn")  # a fork would copy locks held by threads of torch and tqdm
# One process per core; child processes inherit these variables.
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Opener(Protocol):
    """Open worlds; it is pickled and sent to the workers (see `Conditions`)."""

    def open(self, run: Run) -> Crawl:
        """Return a function that does the runs on the world of `run`."""


class Advance(NamedTuple):
    """Pages that a run has fetched since the last event."""

    run: Run
    pages: int


class RunFailure(NamedTuple):
    """A failed run: the reason in one line, and the traceback."""

    run: Run
    reason: str
    trace: str


Event = Advance | RunFailure | Result


def work(
    runs: Sequence[Run], jobs: int, opener: Opener, directory: Path
) -> Generator[Event, None, None]:
    """Do the runs in `jobs` processes and yield events; each result is in a file before its event.

    The processes end when the generator is closed.
    """
    os.environ.update(ONE_THREAD)
    shares = Shares(runs)
    workers = [_Worker(opener, directory, shares) for _ in range(min(jobs, len(runs)))]
    try:
        for worker in workers:
            worker.begin()
        while busy := [worker for worker in workers if worker.run is not None]:
            ready = wait([worker.connection for worker in busy])
            for worker in busy:
                if worker.connection in ready:
                    event = worker.receive()
                    if not isinstance(event, Advance):
                        worker.begin()
                    yield event
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process and its current run."""

    run: Run | None = None
    connection: Connection

    def __init__(self, opener: Opener, directory: Path, shares: Shares) -> None:
        self._arguments = (opener, directory)
        self._shares = shares
        self._share: list[Run] = []
        self._process: SpawnProcess | None = None

    def begin(self) -> None:
        """Begin the next run, if any; start the process if it is not running."""
        self._share = self._share or self._shares.deal()
        self.run = self._share.pop(0) if self._share else None
        if self.run is not None:
            if self._process is None:
                self._start()
            self.connection.send(self.run)

    def receive(self) -> Event:
        """Return the next event of the process, or a RunFailure if the process has ended."""
        assert self.run is not None
        try:
            event: Event = self.connection.recv()
        except (EOFError, OSError):
            said = f"its process ended with exit status {self.end()}"
            event = RunFailure(self.run, said, said)
        return event

    def end(self) -> int | None:
        """End the process and return its exit status."""
        if self._process is None:
            return None
        process, self._process = self._process, None
        process.terminate()
        process.join()
        self.connection.close()
        return process.exitcode

    def _start(self) -> None:
        self.connection, theirs = _context.Pipe()
        process = _context.Process(target=_serve, args=(theirs, *self._arguments), daemon=True)
        resource_tracker.ensure_running()  # starting it later would unblock interrupts
        with _interrupts_held():
            process.start()
        theirs.close()
        self._process = process


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C in a process started meanwhile: its parent ends it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _serve(connection: Connection, opener: Opener, directory: Path) -> None:
    """Do the runs received until the other end of the connection is closed."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    crawler = _Crawler(connection, opener, directory)
    with suppress(EOFError, ConnectionError):
        while True:
            crawler.do(connection.recv())


class _Crawler:
    """Do runs in a process; keep the world of the last run for the next."""

    def __init__(self, connection: Connection, opener: Opener, directory: Path) -> None:
        self._connection = connection
        self._opener = opener
        self._directory = directory
        self._code = code_version()  # now, because files may change during the runs
        self._world: WorldKey | None = None
        self._crawl: Crawl | None = None

    def do(self, run: Run) -> None:
        """Do a run, write its result, and send the event; an exception becomes a RunFailure."""

        def advance(pages: int) -> None:
            self._connection.send(Advance(run, pages))

        try:
            result = replace(self._open(run)(run, advance), code=self._code)
            if not result.pages:
                raise ValueError("no seed brought a page")
            result.write(self._directory)
        except Exception as error:
            said = f"{type(error).__name__}: {reason(error)}"
            self._connection.send(RunFailure(run, said, traceback.format_exc()))
        else:
            self._connection.send(result)

    def _open(self, run: Run) -> Crawl:
        if self._crawl is None or self._world != world_of(run):
            self._crawl = None  # free the memory before the new one is opened
            self._crawl, self._world = self._opener.open(run), world_of(run)
        return self._crawl


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
