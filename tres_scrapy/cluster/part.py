"""Joins the JSON lines files of all shards into one, in the order of the fetches."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from pathlib import Path


def join_parts(parts: Iterable[Path], output: Path) -> int:
    """Write the lines of all parts to a file, sorted by `fetched_at`; return how many.

    The file is replaced at once: a run that is killed leaves the old one.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    part, count = output.with_name(f"{output.name}.part"), 0
    with ExitStack() as opened, part.open("w", encoding="utf-8") as joined:
        files = [
            opened.enter_context(path.open(encoding="utf-8")) for path in parts if path.exists()
        ]
        for _, line in merge(*map(_timed, files)):
            joined.write(line)
            count += 1
    part.replace(output)
    return count


def _timed(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the whole lines of a file with their times, of which each is the latest so far."""
    latest = ""
    for line in lines:
        if line.endswith("\n"):  # else it was cut off by a kill; its item comes again
            latest = max(latest, str(json.loads(line).get("fetched_at", "")))
            yield latest, line
