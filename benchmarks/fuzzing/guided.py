"""Feed a target inputs that atheris changes further where they reach new code of TRES.

Started by `fuzz.py --guided`, in a process for each target: atheris must be there when the modules
of TRES are imported, and ends the process that it ran in.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from random import Random

import atheris

with redirect_stderr(StringIO()), atheris.instrument_imports(include=["tres_scrapy"]):
    import fuzz

    from fuzzing.response import Responses
    from fuzzing.site_file import SiteFile
    from fuzzing.target import Target
    from fuzzing.text import Pages

SEEDS = 400  # inputs of the mutators, which atheris starts from
SHORT = 4_000  # bytes of such an input; more of them are read in the same time
LONGEST = 50_000  # bytes of an input
OPTIONS = ["-verbosity=0", "-timeout=0", "-rss_limit_mb=0", f"-max_len={LONGEST}"]  # fuzz.py checks


class Guided:
    """Reads what atheris feeds for some seconds, then prints the report and ends the process."""

    def __init__(self, target: Target, seconds: float, corpus: Path) -> None:
        self._target, self._seconds, self._corpus = target, seconds, corpus
        self._report = fuzz.Report(target.name)
        in_bytes = isinstance(target, (Pages, Responses, SiteFile))
        self._encoding = "latin-1" if in_bytes else "utf-8"
        self._start = 0.0

    def write_seeds(self, seed: int) -> None:
        """Write the inputs that atheris starts from."""
        errors = "replace" if self._encoding == "latin-1" else "surrogatepass"
        for number in range(SEEDS):
            text = self._target.draw(Random(f"{seed} {self._target.name} {number}"))
            data = text.encode(self._encoding, errors)
            if len(data) <= SHORT:
                (self._corpus / str(number)).write_bytes(data)

    def read(self, data: bytes) -> None:
        """Let the target read an input, or end the run."""
        if not self._start:
            fuzz.set_alarms()  # atheris has set its own
            self._start = time.perf_counter()
        self._report.seconds = time.perf_counter() - self._start
        if self._report.seconds > self._seconds:
            self._end()
        self._report.inputs += 1
        fuzz.read(self._target, data.decode(self._encoding, "surrogateescape"), self._report)

    def _end(self) -> None:
        print(self._report.row())
        for line in fuzz.described(self._target, self._report):
            print(line)
        kept = sum(not path.name.isdecimal() for path in self._corpus.iterdir())
        print(f"{self._target.name}, kept for new code: {kept:,} inputs", flush=True)
        os._exit(bool(self._report.findings))  # else atheris goes on


def main() -> None:
    """Run the target of a name for some seconds from a seed, with a corpus in a folder."""
    name, seconds, seed, corpus = sys.argv[1:]
    fuzz.prepare()
    (target,) = (each for each in fuzz.readers() if each.name == name)
    guided = Guided(target, float(seconds), Path(corpus))
    guided.write_seeds(int(seed))
    atheris.Setup([sys.argv[0], *OPTIONS, f"-seed={seed}", corpus], guided.read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
