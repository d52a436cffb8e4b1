"""The crawls of this folder, in a line each."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Final

from tres_scrapy.report.record import Record
from tres_scrapy.report.record_file import RecordError
from tres_scrapy.report.record_path import records_below

SHOWN: Final = 5  # crawls
FRESH: Final = 60.0  # seconds; a crawl that has written since then is running


def crawls_here() -> str:
    """Return a line about each of the latest crawls of this folder, running ones first."""
    lines = [line for path in records_below()[:SHOWN] if (line := _described(path))]
    if not lines:
        return "No crawl has written to this folder."
    lines.sort(key=lambda line: not line.startswith("  runs"))
    return "\n".join(["Crawls in this folder, the latest first:", *lines])


def _described(path: Path) -> str:
    """Return a line about the crawl of a record; "" if it cannot be read."""
    try:
        with Record(path) as record:
            meta, asked = record.meta(), record.settings().get("TRES_PAGES")
            count = record.count()
    except RecordError:
        return ""
    pages = sum(count.get(kind, 0) for kind in ("relevant", "irrelevant", "copy"))
    of_limit = f" of {int(asked):,}" if asked else ""
    found = f"{pages:,}{of_limit} pages, {count.get('relevant', 0):,} relevant"
    written = float(meta.get("written", 0)) or path.stat().st_mtime  # 0: no page is written yet
    age = time() - written
    reason = meta.get("reason")
    if reason == "shutdown":
        state = f"stopped   {path}: {found}; the same command resumes it"
    elif reason:
        state = f"ended     {path}: {found} ({reason})"
    elif age < FRESH:
        state = f"runs      {path}: {found}"
    else:
        state = f"no end    {path}: {found}; last written {_ago(age)} ago"
    return f"  {state}"


def _ago(seconds: float) -> str:
    minutes = int(seconds / 60)
    if minutes < 120:
        return "a minute" if minutes == 1 else f"{minutes} minutes"
    return f"{minutes // 60} hours" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
