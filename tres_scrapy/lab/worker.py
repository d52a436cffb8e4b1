"""Worker processes: each keeps one world in memory for all its runs on that world."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from tres_scrapy.lab.condition import Crawl
from tres_scrapy.lab.grid import Shares, World, world_of
from tres_scrapy.lab.result import Result, Run
from tres_scrapy.lab.version import code_version
from tres_scrapy.url.message import reason

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
        self._world: World | None = None
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
