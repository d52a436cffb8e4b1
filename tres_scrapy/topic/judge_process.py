"""The reward model in a separate process: `python -m tres_scrapy.topic.judge_process`.

A hostile page may crash the parser or keep it busy for minutes: that ends this process, not the
crawl. The crawler and the model do not share a core or Python's global lock.

Messages are pickled, because both ends of the pipes are this program.
"""

from __future__ import annotations

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import BinaryIO

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.links.code import Wordbook
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.pdf_page import start_module
from tres_scrapy.topic.judge import Source, judge_pages
from tres_scrapy.topic.pack import Judged, OwnJudge, Pack, load_packs
from tres_scrapy.url.message import TresError, plainly

LONGEST_CHARACTER = 4  # bytes
READING = 5.0  # seconds of the processor for one page
PATIENCE = 60.0  # seconds without a sign of life, in which one page is read or the model computes
OWN_PATIENCE = 600.0  # with a function of the user's own, which may ask a service

logger = logging.getLogger(__name__)


class WorkerError(TresError):
    """Raised when the process cannot be started."""


class PageError(TresError):
    """Raised when a batch of pages could not be judged; the message gives the reason.

    `page` is the number of the page that was being read, if that is the reason; `is_slow` is
    whether it took too long.
    """

    def __init__(self, message: str, page: int | None = None, *, is_slow: bool = False) -> None:
        super().__init__(message)
        self.page = page
        self.is_slow = is_slow


@dataclass(frozen=True)
class Task:
    """The arguments of the process: pack directory and reading limits.

    `contexts` and `cues` are whether the words around links and all that links say are read,
    `content` names the further fields of relevant pages. `own_judge` is a function of the user's
    own that judges pages instead of the pack's classifier.
    """

    pack: Path
    limits: ReadingLimits
    contexts: bool = False
    cues: bool = False
    content: tuple[str, ...] = ()
    own_judge: str | None = None
    more_packs: tuple[Path, ...] = ()  # of further topics
    reading: float = READING

    @property
    def packs(self) -> tuple[Path, ...]:
        """The pack of each topic."""
        return self.pack, *self.more_packs

    def load(
        self, begin: Callable[[int | None], None] = lambda number: None
    ) -> Callable[[Sequence[Source]], list[Judged]]:
        """Return the function that judges.

        `begin` receives the number of each page of a batch before it is read, and None at the end.
        Raise TresError if the pack cannot be read or the function of the user's own is not found.
        """
        return partial(self.reader(begin), self.load_packs())

    def load_packs(self) -> Pack:
        """Return the pack of the topic, or those of several as one."""
        pack = load_packs(self.packs)
        if self.own_judge is not None:
            pack.judge_by(OwnJudge(self.own_judge))
        return pack

    def reader(self, begin: Callable[[int | None], None]) -> Callable[..., list[Judged]]:
        """Return `judge_pages` with all arguments but the pack and the sources."""
        return partial(
            judge_pages,
            limits=self.limits,
            contexts=self.contexts,
            words=Wordbook() if self.cues else None,
            begin=begin,
            content=self.content,
        )


class Worker:
    """Judges batches of pages in a process, and restarts it if a page ended it."""

    def __init__(self, task: Task, *, patience: float | None = None) -> None:
        self._task = task
        self._patience = patience or (PATIENCE if task.own_judge is None else OWN_PATIENCE)
        self._page: int | None = None  # of the batch, that the process reads
        self._is_closed = False
        self._is_late = False
        self._heard = 0.0
        self._process = self._start()

    def __call__(self, sources: Sequence[Source]) -> list[Judged]:
        """Return the results for a batch, tried once more if something else killed the process.

        Raise PageError if the batch fails, WorkerError if the process cannot be restarted.
        """
        answer = self._try(sources)
        killed = not self._is_late and self._process.returncode == -signal.SIGKILL
        if answer is None and killed and not self._is_closed:
            logger.warning("The process that judges pages was killed: it judges them once more")
            answer = self._try(sources)
        if answer is None:
            is_slow = self._process.returncode == -signal.SIGPROF
            limit = self._task.reading if is_slow else self._patience
            reason = f"took more than {limit:g} s" if self._is_late or is_slow else "ended"
            message = f"the process that judges pages {reason}"
            raise PageError(message, self._page, is_slow=is_slow)
        if isinstance(answer, str):
            raise PageError(answer)
        return answer

    def _try(self, sources: Sequence[Source]) -> list[Judged] | str | None:
        """Return the results or an error of the judge, None if the process has ended."""
        if self._is_closed:
            raise WorkerError("the process that judges pages was closed")
        if self._process.poll() is not None:
            self._end()
            self._process = self._start()
            self.wait()
        self._is_late = False
        try:
            return self._ask([self._cut(source) for source in sources])
        except (OSError, EOFError, pickle.UnpicklingError):
            self._process.wait()
            return None

    def wait(self) -> None:
        """Wait until the process has loaded the model; raise WorkerError if it has ended."""
        try:
            answer = pickle.load(self._output)  # noqa: S301 - our own process
        except (OSError, EOFError):
            status = self._process.wait()
            raise WorkerError(
                f"the process that judges pages does not start (exit status {status}): "
                "check the free memory"
            ) from None
        if isinstance(answer, str):
            raise WorkerError(answer)

    def close(self) -> None:
        """Kill the process, which has no state to save; from now on pages raise WorkerError."""
        self._is_closed = True
        self._end()

    def _end(self) -> None:
        self._kill()
        with suppress(OSError):  # unsent bytes
            self._input.close()
        self._output.close()
        self._process.wait()

    def _cut(self, source: Source) -> Source:
        if source.is_sitemap or is_pdf(source.body):  # what ends early cannot be read
            return source
        return source._replace(body=source.body[: LONGEST_CHARACTER * self._task.limits.html])

    def _ask(self, sources: list[Source]) -> list[Judged] | str:
        self._page = None
        with self._watched():
            pickle.dump(sources, self._input, pickle.HIGHEST_PROTOCOL)
            self._input.flush()
            while True:
                self._heard = monotonic()  # each page has its time, and so has the model for all
                answer: list[Judged] | str | int | None = pickle.load(self._output)  # noqa: S301
                if isinstance(answer, list | str):
                    return answer
                self._page = answer

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Kill the process if nothing is heard of it for too long."""
        self._heard, over = monotonic(), Event()

        def watch() -> None:
            while not over.wait(left := self._heard + self._patience - monotonic()):
                if left <= 0:
                    self._is_late = True
                    self._kill()
                    return

        Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _kill(self) -> None:
        """Kill the process with all that it has started, which may hold the pipe open."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            # Ctrl-C must not reach it before the crawl has ended
            process = start_module(__name__, process_group=0)
        except OSError as error:
            raise WorkerError(
                f"the process that judges pages does not start: {plainly(error)}"
            ) from None
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout
        with suppress(OSError):  # the process has ended: `wait` reports it
            pickle.dump(self._task, self._input)
            self._input.flush()
        return process


def main() -> None:
    """Judge the batches that arrive on standard input until the crawler closes it."""
    with suppress(BrokenPipeError), os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # printed text must not mix with the answers
        _work(sys.stdin.buffer, output)


def _work(input_: BinaryIO, output: BinaryIO) -> None:
    task: Task = pickle.load(input_)  # noqa: S301 - our own crawler

    def send(answer: bool | str | int | list[Judged] | None) -> None:
        pickle.dump(answer, output, pickle.HIGHEST_PROTOCOL)
        output.flush()

    def begin(number: int | None) -> None:
        # SIGPROF ends the process, whatever code it runs
        signal.setitimer(signal.ITIMER_PROF, 0 if number is None else task.reading)
        send(number)

    try:
        judge = task.load(begin)
    except TresError as error:
        send(str(error))
        sys.exit(1)
    learn: Callable[[], None] = getattr(judge, "learn", lambda: None)  # of a topic that changes
    answer: bool | str | list[Judged] = True
    gc.collect()
    gc.freeze()  # what is loaded stays: looking through it again and again took 5 % of the time
    while True:
        send(answer)
        learn()
        try:
            sources = pickle.load(input_)  # noqa: S301 - our own crawler
        except EOFError:
            return
        try:
            answer = judge(sources)
        except TresError as error:
            answer = str(error)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
