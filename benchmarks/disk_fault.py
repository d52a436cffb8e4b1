"""Strike a crawl in a JOBDIR inside a write to its file: SIGKILL, EIO or ENOSPC, phase by phase."""

from __future__ import annotations

import errno
import random
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tres_scrapy.run.run_file import NAME

HERE = Path(__file__).parent
PHASES = ("start", "booking", "checkpoint", "migration", "end")
ACTIONS = {"SIGKILL": 0, "EIO": errno.EIO, "ENOSPC": errno.ENOSPC}
# by phase: the most writes that pass first; a transaction takes about 20
AFTER = {"start": 40, "booking": 400, "checkpoint": 60, "migration": 30, "end": 15}
LONGEST = 20.0  # seconds from the phase to the strike; then the crawl is killed
SLOWEST_START = 120.0  # seconds for the start of a crawl
END = 5  # pages fetched by a crawl that is struck at its end

Start = Callable[[dict[str, str], list[str]], subprocess.Popen[str]]


@dataclass
class DiskFaults:
    """Strikes the crawls of the JOBDIR `job` in turns; `done` counts by phase and action."""

    job: Path
    answers: Callable[[], int]  # that the web has given
    done: Counter[str] = field(default_factory=Counter)
    unclean: int = 0  # crawls that did not stop with status 1 and without a traceback

    def __post_init__(self) -> None:
        self._library = self.job.with_name("failing_disk.so")
        source = str(HERE / "failing_disk.c")
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(self._library), source, "-ldl"]
        subprocess.run(command, check=True)  # noqa: S603 - our own command
        self._flag = self.job.with_name("flag")

    def strike(self, number: int, when: int, start: Start) -> str:
        """Run a crawl until it is struck, soon after `when` answers; return what happened."""
        chance = random.Random(f"{number} {when}")
        file = self.job / NAME
        turn, place = divmod(number - 1, len(PHASES))
        phase = PHASES[place]
        if phase != "start" and not booked(file):
            phase = "booking"  # the others need pages
        action = [*ACTIONS][turn % len(ACTIONS)]
        in_file = phase == "checkpoint" or (phase == "end" and chance.random() < 0.5)
        environment = {
            "LD_PRELOAD": str(self._library),
            "DISK_FILE": str(file.resolve()) + ("" if in_file else "-wal"),
            "DISK_FLAG": str(self._flag),
            "DISK_AFTER": str(chance.randrange(AFTER[phase])),
            "DISK_ERROR": str(ACTIONS[action]),
        }
        if phase == "migration":
            make_older(file)
        pages = booked(file) + END
        self._flag.unlink(missing_ok=True)
        if phase in {"start", "migration"}:
            self._flag.touch()
        arguments = ["-s", f"TRES_PAGES={pages}"] if phase == "end" else []
        crawl = start(environment, arguments)
        least, deadline = max(when, self.answers() + 1), time.monotonic() + SLOWEST_START + LONGEST
        while crawl.poll() is None and time.monotonic() < deadline:
            is_time = booked(file) >= pages if phase == "end" else self.answers() >= least
            if is_time and not self._flag.exists():
                self._flag.touch()
                deadline = time.monotonic() + LONGEST
            time.sleep(0.02)
        if crawl.poll() is None:
            action = "SIGKILL, no write meanwhile"
            crawl.kill()
        said = crawl.communicate()[1]
        if phase == "migration" and version(file) != 7:
            phase = "after migration"
        if crawl.returncode == 0:
            action = f"none, before {action}"
        elif crawl.returncode != -9 and (crawl.returncode != 1 or "Traceback" in said):
            self.unclean += 1
            print(f"{phase}, {action}: status {crawl.returncode}\n{said[-3000:]}")
        self.done[f"{phase}, {action}"] += 1
        lines = [line for line in said.strip().splitlines() if "WARNING" not in line]
        return f"{phase}, {action}: {''.join(lines[-1:])}"


def booked(file: Path) -> int:
    """Return the number of pages in a file of a run."""
    if not file.exists():
        return 0
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as run:
        try:
            found = run.execute("SELECT count(*) FROM page WHERE kind = 'page'").fetchone()
        except sqlite3.OperationalError:  # it is just being made
            return 0
        return int(found[0])


def version(file: Path) -> int:
    """Return the version of a file of a run."""
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as run:
        return int(run.execute("PRAGMA user_version").fetchone()[0])


def make_older(file: Path) -> None:
    """Replace a file of a run by one of version 7."""
    sys.path.append(str(HERE.parent / "tests" / "run"))
    from version_7 import write_version_7  # type: ignore[import-not-found]  # noqa: PLC0415

    if version(file) == 7:  # its migration was struck
        return
    older = file.with_name("older")
    write_version_7(file, older)
    for ending in ("-wal", "-shm"):
        file.with_name(f"{NAME}{ending}").unlink(missing_ok=True)
    older.replace(file)
