"""One crawl of one program: the web is served, the program runs, the web's log is counted."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from peering.count import Follower, Tally
from peering.program import Job, Program
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.lab.webs.web_process import WebProcess

POLL: Final = 0.1  # seconds between two looks at the log
FULL, ITSELF, LATE = "all requests", "ended by itself", "out of time"
# Each keeps the bytecode of its libraries, as pip leaves it: to compile them takes seconds.
ENVIRONMENT: Final = {"PYTHONDONTWRITEBYTECODE": ""}
TICKS: Final = os.sysconf("SC_CLK_TCK")


class CrawlError(RuntimeError):
    """Raised if a program fails; the message has the end of its output."""


def measure(
    program: Program, job: Job, seconds: float, progress: Callable[[Tally], None]
) -> dict[str, Any]:
    """Run a program until the web has counted `job.limit` requests; return the counts as a row.

    A program that ends before is done; one that is slower than `seconds` is stopped. Raise
    CrawlError if it fails.
    """
    log, said = job.folder / "web.jsonl", job.folder / "output.txt"
    web = WebProcess(
        WebOptions(kind="recorded", data=job.data, labels=job.labels, log=log), [job.topic]
    )
    try:
        with said.open("wb") as output:
            begun = time.time()
            crawl = subprocess.Popen(  # noqa: S603 - the programs of this benchmark
                program.command(job, web.proxy),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=job.folder,
                env=os.environ | ENVIRONMENT | {"http_proxy": web.proxy} | program.environment(job),
                start_new_session=True,
            )
        try:
            tally, spent, start, ended = _follow(crawl, log, job.limit, begun + seconds, progress)
        finally:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(crawl.pid, signal.SIGKILL)
            crawl.wait()
    finally:
        web.end()
    if not tally.requests or (ended == ITSELF and crawl.returncode):
        text = said.read_text(encoding="utf-8", errors="replace")
        raise CrawlError(f"{program.name} on {job.topic} fails: {text[-2000:]}")
    return {
        "requests": tally.requests,
        "robots": tally.robots,
        "found": tally.found,
        "ended": ended,
        "start_wall": round(tally.times[0] - begun, 2),
        "wall": round(tally.times[1] - begun, 2),
        "start_processor": round(start, 2),
        "processor": round(spent, 2),
    }


def _follow(
    crawl: subprocess.Popen[bytes],
    log: Path,
    limit: int,
    latest: float,
    progress: Callable[[Tally], None],
) -> tuple[Tally, float, float, str]:
    """Return the count, the processor seconds in all and at the first request, and the ending."""
    tally, follower, spent, start = Tally(limit), Follower(log), 0.0, 0.0
    while True:
        spent = processor_seconds(crawl.pid) or spent
        follower.read(tally)
        progress(tally)
        if not tally.requests:
            start = spent
        if tally.full:
            return tally, spent, start, FULL
        if crawl.poll() is not None:
            follower.read(tally)
            return tally, spent, start, ITSELF
        if time.time() > latest:
            return tally, spent, start, LATE
        time.sleep(POLL)


def processor_seconds(session: int) -> float:
    """Return the processor time in seconds of all processes of a session, ended children too."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # the process has ended
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            ticks += (int(fields[3]) == session) * sum(map(int, fields[11:15]))
    return ticks / TICKS
