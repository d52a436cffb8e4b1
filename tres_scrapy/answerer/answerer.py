"""Runs the program that answers whether pages are relevant, in a process of its own.

The process gets one page a line as a JSON object, to the end of its standard input, and prints one
answer a line: true, false, null, or such a value and a reason in a list.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Final

from tres_scrapy.answerer.answer import SHAPE, Answer, AnswererError, AskedPage
from tres_scrapy.answerer.http import Address
from tres_scrapy.url.message import LONGEST_REASON, plainly, printable

PATIENCE: Final = 300.0  # seconds for the pages of one call
HTTP: Final = "http"
PROGRAM: Final = "program "  # and its command line
LARGEST: Final = 1_000_000  # bytes of what a program prints that are read


class Answerer:
    """Asks a program: `http`, `program COMMAND` or a function, `module:function`.

    It starts for each call, and is killed with all that it has started after `patience` seconds.
    Raise AnswererError if there is no such program.
    """

    def __init__(self, name: str, *, patience: float = PATIENCE) -> None:
        self.name = name
        self._patience = patience
        self._command = _command(name)
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def ask(self, pages: list[AskedPage]) -> list[Answer]:
        """Return an answer for each page; raise AnswererError if that fails."""
        with TemporaryFile() as asked, TemporaryFile() as said, TemporaryFile() as complaint:
            asked.writelines(json.dumps(page._asdict()).encode() + b"\n" for page in pages)
            asked.seek(0)
            status = self._run(asked, said, complaint)
            if status:
                raise self._error(f"ended with status {status}{_last_line(complaint)}")
            said.seek(0)
            return self._read(said.read(LARGEST), len(pages))

    def close(self) -> None:
        """End a call under way, in whatever thread it is."""
        self._is_closed = True
        self._kill()

    def _run(self, asked: IO[bytes], said: IO[bytes], complaint: IO[bytes]) -> int:
        path = os.pathsep.join(place for place in sys.path if place)
        try:
            self._process = process = subprocess.Popen(  # noqa: S603 - the user's own command, no shell
                self._command,
                stdin=asked,
                stdout=said,
                stderr=complaint,
                env={**os.environ, "PYTHONPATH": path},
                process_group=0,  # Ctrl-C must not reach it before the crawl has ended
            )
        except OSError as error:
            raise self._error(f"does not start: {plainly(error)}") from None
        if self._is_closed:
            self._kill()
        try:
            return process.wait(self._patience)
        except subprocess.TimeoutExpired:
            raise self._error(f"took more than {self._patience:g} s") from None
        finally:
            self._kill()
            process.wait()
            self._process = None  # its number may be another's now

    def _kill(self) -> None:
        if (process := self._process) is not None:  # another thread may end it
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def _read(self, said: bytes, count: int) -> list[Answer]:
        lines = [line for line in said.decode("utf-8", "replace").splitlines() if line.strip()]
        if len(lines) != count:
            raise self._error(f"gave {len(lines)} answers to {count} pages: give one for each")
        found = []
        for line in lines:
            try:
                found.append(Answer.read(json.loads(line)))
            except (ValueError, RecursionError):
                raise self._error(f"answered {printable(line)[:60]!r}: {SHAPE}") from None
        return found

    def _error(self, what: str) -> AnswererError:
        return AnswererError(f"answerer {self.name!r} {what}")


def _command(name: str) -> list[str]:
    """Return the command line of an answerer; raise AnswererError if there is no such program."""
    if name == HTTP:
        Address.of(os.environ)
        return [sys.executable, "-m", "tres_scrapy.answerer.http"]
    if name.startswith(PROGRAM):
        command = shlex.split(name)[1:]
        if shutil.which(command[0]) is None:
            raise AnswererError(f"answerer {name!r}: there is no program {command[0]!r}")
        return command
    module = name.partition(":")[0].partition(".")[0]
    if PathFinder.find_spec(module, [*sys.path, str(Path.cwd())]) is None:
        raise AnswererError(f"answerer {name!r}: there is no module {module!r}")
    return [sys.executable, "-m", "tres_scrapy.answerer.function", name]


def _last_line(file: IO[bytes]) -> str:
    """Return the last line of what a process has complained, after a colon; "" if there is none."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - LARGEST))
    lines = file.read().decode("utf-8", "replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f": {printable(last.strip())[:LONGEST_REASON]}" if last else ""
