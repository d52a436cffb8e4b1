"""Fuzz all code that reads input written by strangers.

    python benchmarks/fuzz.py [--inputs 1000000] [--seed 1] [--target NAME]
    python benchmarks/fuzz.py --guided SECONDS [--seed 1] [--target NAME]

The seed, the target's name and a number determine each input, so a run can be repeated. A finding
is an unexpected exception, a failed check, or an input that takes too long or 256 MiB. Too long is
a minute, or five seconds of processor time; half a second where the crawler's own process reads it;
for a page one second and another for each 100,000 characters. Findings are printed with the
smallest input that shows them; the exit status is then 1. The processor time of each input is
measured: the median, the 99.9th percentile, the worst, and how many inputs take above 50 ms.

With --guided (`pip install atheris`) each target that reads no folder is fed for so many seconds,
in a process of its own; inputs that reach new code of TRES are changed further.
"""

from __future__ import annotations

import argparse
import logging
import resource
import signal
import subprocess
import sys
import time
import traceback
import warnings
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from types import FrameType
from typing import NamedTuple, NoReturn

import numpy as np
import torch
from fuzzing.job import DamagedJob
from fuzzing.pack import DamagedPack
from fuzzing.response import Responses
from fuzzing.site_file import RightsFiles, RobotsFiles, Sitemaps
from fuzzing.target import Target
from fuzzing.text import Hosts, Pages, StoredRequests, Texts, Urls

QUICK = Path("/dev/shm")  # noqa: S108 - a file there is written ten times as fast as on a disk
SECONDS = 5.0  # of processor time that one input may take
AT_ONCE = 0.5  # in the crawler's own process, which sends and receives
PAGE = 1.0, 1e-5  # for any page, and for each of its characters
WAITING = 60.0  # seconds that it may take in all
MEMORY = 256 * 2**20  # bytes
STEP = 0.05  # seconds of processor time that one step of the event loop should take at most
SHRINKING = 20.0  # seconds of processor time in which smaller inputs are tried


class EndlessError(BaseException):
    """Raised if an input takes too long; a BaseException, so that no reader catches it."""


class Fault(NamedTuple):
    """A failure as text; keeping the exception itself would keep files open."""

    place: str
    error: str


@dataclass
class Finding:
    """The first input that showed a fault, and how often the fault occurred."""

    text: str
    fault: Fault
    count: int = 0


@dataclass
class Report:
    """The results for the inputs of one target."""

    name: str
    inputs: int = 0
    seconds: float = 0.0
    times: array[float] = field(default_factory=lambda: array("f"))  # of each input
    slowest: tuple[float, str] = 0.0, ""
    findings: dict[str, Finding] = field(default_factory=dict)

    def row(self) -> str:
        """Return a row of the table of results."""
        rate = self.inputs / max(self.seconds, 1e-9)
        times = np.array(self.times) if self.times else np.zeros(1)
        middle, high, worst = 1_000 * np.quantile(times, [0.5, 0.999, 1])
        slow = np.count_nonzero(times > STEP)
        return (
            f"| {self.name} | {self.inputs:,} | {self.seconds:.0f} | {rate:,.0f} "
            f"| {middle:.2f} | {high:.1f} | {worst:.1f} | {slow:,} | {len(self.findings)} |"
        )

    def note(self, text: str, seconds: float) -> None:
        """Note the processor time of an input."""
        self.times.append(seconds)
        if seconds > self.slowest[0]:
            self.slowest = seconds, text


def main() -> int:
    """Feed all targets and print the findings."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="of all targets together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", help="feed this one only")
    parser.add_argument("--guided", type=float, metavar="SECONDS", help="of each target")
    options = parser.parse_args()
    prepare()
    print("| target | inputs | seconds | inputs/s | ms | 99.9 % | worst | > 50 ms | findings |")
    print("|---" * 9 + "|")
    if options.guided:
        names = [target.name for target in readers() if options.target in {None, target.name}]
        return max(guided(name, options.guided, options.seed) for name in names)
    found: list[str] = []
    faulty = False
    with TemporaryDirectory(dir=QUICK if QUICK.exists() else None) as directory:
        for target in targets(Path(directory)):
            if options.target in {None, target.name}:
                report = feed(target, round(options.inputs * target.share), options.seed)
                print(report.row(), flush=True)
                found += described(target, report)
                faulty |= bool(report.findings)
    for line in found:
        print(line)
    return int(faulty)


def prepare() -> None:
    """Silence the log and the warnings."""
    logging.disable()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)


def guided(name: str, seconds: float, seed: int) -> int:
    """Let atheris choose the inputs of a target; return 0 if there is no finding."""
    with TemporaryDirectory(dir=QUICK if QUICK.exists() else None) as corpus:
        command = [sys.executable, "-m", "fuzzing.guided", name, str(seconds), str(seed), corpus]
        return subprocess.run(command, cwd=Path(__file__).parent, check=False).returncode  # noqa: S603


def readers() -> list[Target]:
    """Return the targets that read no folder."""
    texts: list[Target] = [Urls(), Hosts(), Pages(), Responses(), Texts(), StoredRequests()]
    return [*texts, Sitemaps(), RobotsFiles(), RightsFiles()]


def targets(directory: Path) -> Iterator[Target]:
    """Yield the targets; their shares sum to 1."""
    yield from readers()
    yield DamagedPack(directory / "models")
    yield DamagedJob(directory / "jobs")


def feed(target: Target, inputs: int, seed: int) -> Report:
    """Let a target read its inputs; count repeated faults."""
    report = Report(target.name, inputs)
    set_alarms()
    start = time.perf_counter()
    for number in range(inputs):
        read(target, target.draw(Random(f"{seed} {target.name} {number}")), report)
    report.seconds = time.perf_counter() - start
    return report


def set_alarms() -> None:
    """Interrupt an input that takes too long."""
    signal.signal(signal.SIGPROF, _interrupt)
    signal.signal(signal.SIGALRM, _interrupt)


def read(target: Target, text: str, report: Report) -> None:
    """Let a target read an input, and note its time and its fault."""
    found, seconds = timed(target, text)
    if seconds > STEP:  # a first call, or a collection of garbage
        seconds = min(seconds, timed(target, text)[1])
    report.note(text, seconds)
    if found is not None:
        report.findings.setdefault(found.place, Finding(text, found)).count += 1


def allowed(target: Target, text: str) -> float:
    """Return the seconds of processor time that an input may take."""
    if isinstance(target, Responses):
        return AT_ONCE
    if isinstance(target, Pages):
        start, each = PAGE
        return min(SECONDS, start + each * len(text))
    return SECONDS


def fault(target: Target, text: str) -> Fault | None:
    """Return the fault that an input shows, or None."""
    before = _peak_memory()
    signal.setitimer(signal.ITIMER_PROF, allowed(target, text))
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        target.check(text)
        if (more := _peak_memory() - before) > MEMORY:
            raise MemoryError(f"{more:,} bytes")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a Rust library is no Exception
        return Fault(_place(error), f"{type(error).__name__}: {error}"[:500])
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def timed(target: Target, text: str) -> tuple[Fault | None, float]:
    """Return the fault that an input shows, or None, and the processor time."""
    start = time.process_time()
    return fault(target, text), time.process_time() - start


def described(target: Target, report: Report) -> Iterable[str]:
    """Yield lines that describe the slowest input, and each finding with a small input."""
    seconds, text = report.slowest
    if seconds > STEP:
        yield f"{target.name}, {1_000 * seconds:.0f} ms: {len(text):,} characters"
        yield f"    {ascii(text)[:500]}"
    for place, finding in report.findings.items():
        yield f"{target.name}, {finding.count} times, {place}: {finding.fault.error}"
        yield f"    {ascii(shrunk(target, finding.text, place))[:2_000]}"


def shrunk(target: Target, text: str, place: str) -> str:
    """Return a smaller input with the same fault, found by leaving out parts."""
    end, size = time.process_time() + SHRINKING, len(text) // 2
    while size:
        start = 0
        while start < len(text) and time.process_time() < end:
            smaller = text[:start] + text[start + size :]
            found = fault(target, smaller)
            if found is not None and found.place == place:
                text = smaller
            else:
                start += size
        size //= 2
    return text


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    raise EndlessError(f"more than {SECONDS:g} seconds of processor time or {WAITING:g} in all")


def _peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _place(error: BaseException) -> str:
    """Return the type of an error and the last line of the project in its traceback."""
    root = str(Path(__file__).parents[1])
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(root)]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "nowhere"
    return f"{type(error).__name__} at {where}"


if __name__ == "__main__":
    sys.exit(main())
