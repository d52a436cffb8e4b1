"""The memory that a crawl takes."""

from __future__ import annotations

import os
from pathlib import Path


def resident_memory() -> int | None:
    """Return the bytes that this process and its children hold, None where /proc is missing.

    Memory that processes share counts once for each.
    """
    waiting, found = [os.getpid()], 0
    while waiting:
        process = Path("/proc", str(waiting.pop()))
        try:
            found += int((process / "statm").read_text().split()[1])
            for file in (process / "task").glob("*/children"):
                waiting += map(int, file.read_text().split())
        except OSError:  # it has just ended
            continue
    return found * os.sysconf("SC_PAGE_SIZE") or None
