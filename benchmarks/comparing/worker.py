"""Worker processes: each does runs that share a world, which it keeps in memory."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final, NamedTuple

from comparing.condition import Crawl
from comparing.result import Result, Run, WorldKey, code_version, world_of
from tres_scrapy.url.message import reason

_context = get_context("spawn")  # a fork would copy locks held by threads of torch and tqdm
# One process per core; child processes inherit these variables.
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


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
Opener = Callable[[Run], Crawl]  # pickled and sent to the workers; returns what does the runs


def shares_of(runs: Iterable[Run], jobs: int) -> list[list[Run]]:
    """Return the runs of each world; the largest are halved until every job has some.

    A share is ordered by policy, so each half has other policies.
    """
    worlds: defaultdict[WorldKey, list[Run]] = defaultdict(list)
    for run in runs:
        worlds[world_of(run)].append(run)
    shares = sorted(worlds.values(), key=len)
    while shares and len(shares) < jobs and len(shares[-1]) > 1:
        largest = shares.pop()
        half = len(largest) // 2
        shares = sorted([*shares, largest[:half], largest[half:]], key=len)
    return shares


def work(
    runs: Sequence[Run], jobs: int, open_world: Opener, directory: Path
) -> Generator[Event, None, None]:
    """Do the runs in `jobs` processes and yield events; each result is in a file before its event.

    The processes end when the generator is closed.
    """
    os.environ.update(ONE_THREAD)
    waiting = shares_of(runs, jobs)
    workers: list[_Worker] = []
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_Worker(waiting.pop(), open_world, directory))
            ready = wait([worker.connection for worker in workers])
            for worker in [worker for worker in workers if worker.connection in ready]:
                event = worker.receive()
                if event is not None:
                    yield event
                if event is None or worker.has_ended:
                    workers.remove(worker)
                    worker.end()
                    waiting += [worker.left] if worker.left else []
    finally:
        for worker in workers:
            worker.end()


class _Worker:
    """A process and the runs that it has not done."""

    has_ended = False

    def __init__(self, share: list[Run], open_world: Opener, directory: Path) -> None:
        self.left = share
        self.connection, theirs = _context.Pipe()
        self._process = _context.Process(
            target=_serve, args=(theirs, open_world, directory, share), daemon=True
        )
        resource_tracker.ensure_running()  # starting it later would unblock interrupts
        with _interrupts_held():
            self._process.start()
        theirs.close()

    def receive(self) -> Event | None:
        """Return the next event, a RunFailure if the process broke off, None if all is done."""
        try:
            event: Event = self.connection.recv()
        except (EOFError, OSError):
            self.has_ended = True
            if not self.left:
                return None
            said = f"its process ended with exit status {self.end()}"
            event = RunFailure(self.left[0], said, said)
        if not isinstance(event, Advance):
            del self.left[0]
        return event

    def end(self) -> int | None:
        """End the process and return its exit status."""
        self._process.terminate()
        self._process.join()
        self.connection.close()
        return self._process.exitcode


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Block Ctrl-C in a process started meanwhile: its parent ends it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _serve(
    connection: Connection, open_world: Opener, directory: Path, runs: Sequence[Run]
) -> None:
    """Do runs on one world, write their results, and send events; an exception fails its run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    code = code_version()  # now, because files may change during the runs
    crawl: Crawl | None = None
    for run in runs:

        def advance(pages: int, run: Run = run) -> None:
            connection.send(Advance(run, pages))

        try:
            crawl = crawl or open_world(run)
            result = replace(crawl(run, advance), code=code)
            if not result.pages:
                raise ValueError("no seed brought a page")
            result.write(directory)
        except Exception as error:
            said = f"{type(error).__name__}: {reason(error)}"
            connection.send(RunFailure(run, said, traceback.format_exc()))
        else:
            connection.send(result)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it ends by itself: no exit within the exit
