"""Run the commands of docs/tutorial.md and write what they print into it.

    python docs/tutorial.py           write the page
    python docs/tutorial.py --check   only compare: exit status 1 if the page says something else

The commands are those of the blocks marked `console`, in the order of the page, in one empty
folder. A line `...` of the page stands for any number of printed lines. Figures, and what follows
the name of a host, may differ.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = Path(__file__).with_suffix(".md")
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)  # command, output
LOGGED = re.compile(r"^[\d-]+ [\d:]+ \[[\w.-]+\] [A-Z]+: ", re.MULTILINE)
PROGRAM = "from tres_scrapy.cli.main import main; main()"
REST = "..."


def run_page(page: str) -> tuple[str, list[str]]:
    """Return the page with what its commands print, and where that differs from the page."""
    wrong: list[str] = []
    with TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        environment = os.environ | {"PATH": f"{_program(Path(folder))}:{os.environ['PATH']}"}

        def run_step(step: re.Match[str]) -> str:
            command, shown = step[1], step[2].splitlines()
            printed = _printed(command, work, environment)
            try:
                lines = fitted(shown, printed)
            except ValueError as error:
                lines = printed
                wrong.append(f"$ {command}\n  {error}")
            return "\n".join([f"$ {command}", *lines, ""])

        return BLOCK.sub(lambda block: STEP.sub(run_step, block[0]), page), wrong


def fitted(shown: list[str], printed: list[str]) -> list[str]:
    """Return the shown lines as they are printed now; raise ValueError if one is not printed."""
    lines, place, is_open = [], 0, False
    for line in shown:
        if line == REST:
            lines.append(line)
            is_open = True
            continue
        end = len(printed) if is_open else place + 1
        found = (n for n in range(place, end) if n < len(printed) and _same(line, printed[n]))
        number = next(found, None)
        if number is None:
            here = repr(printed[place]) if place < len(printed) else "the end"
            raise ValueError(f"{line!r} is not printed; there is {here}")
        lines.append(printed[number])
        place, is_open = number + 1, False
    if place < len(printed) and not is_open:
        raise ValueError(f"{printed[place]!r} is printed, but not shown")
    return lines


def _same(shown: str, printed: str) -> bool:
    return _shape(shown) == _shape(printed)


def _shape(line: str) -> str:
    """Return a line without its figures, and without what follows the name of a host."""
    line = re.sub(r"(http://)?[\w.-]+\.test\b.*", "HOST", line)
    return re.sub(r"\s+", " ", re.sub(r"[-+±]?\d+([.,:]\d+)*", "#", line))


def _printed(command: str, work: Path, environment: dict[str, str]) -> list[str]:
    """Run a command; return its lines, without the time and the name of the logger."""
    ended = subprocess.run(  # noqa: S603 - the commands are those of our own page
        ["/bin/bash", "-e", "-o", "pipefail", "-c", command],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ended.returncode:
        sys.exit(f"$ {command}\nended with exit status {ended.returncode}:\n{ended.stdout}")
    return [line.rstrip() for line in LOGGED.sub("", ended.stdout).splitlines()]


def _program(folder: Path) -> Path:
    """Return a new folder with the program `tres` of this Python."""
    place = folder / "bin"
    place.mkdir()
    program = place / "tres"
    called = shlex.join([sys.executable, "-c", PROGRAM])
    program.write_text(f'#!/bin/sh\nexec {called} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return place


if __name__ == "__main__":
    page, wrong = run_page(PAGE.read_text(encoding="utf-8"))
    if "--check" not in sys.argv:
        PAGE.write_text(page, encoding="utf-8")
    if wrong:
        sys.exit("\n".join(["These commands print something else:", *wrong]))
    print(f"{len(STEP.findall(''.join(BLOCK.findall(page))))} commands print what the page says")
