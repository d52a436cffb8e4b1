"""Where the records of crawls are, and a line about each of them."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Final

from tres_scrapy.config.guest import offered
from tres_scrapy.report.audit import audit_path
from tres_scrapy.report.record import Record
from tres_scrapy.report.share import totals
from tres_scrapy.run.run_file import NAME, SUFFIX, RecordError
from tres_scrapy.url.message import plural

SHARD: Final = "shard-"  # and its number: the JOBDIR of a shard, in the folder of its crawl
PART: Final = ".part"  # ends the name of a folder that is not complete yet
REPORT: Final = ".html"
ENDS: Final = {  # finish reasons, ours and Scrapy's
    "page_limit": "all pages are fetched",
    "frontier_exhausted": "no links are left",
    "finished": "no links are left",
    "found_enough": "hardly a relevant page is left",
    "no_page": "no seed brought a page",
    "unreachable": "the network was gone for too long",
    "no_judge": "the process that judges pages does not start",
    "shutdown": "it was stopped",
}
SHOWN: Final = 5  # crawls
FRESH: Final = 60.0  # seconds; a crawl that has written since then is running


def record_path(output: Path, job: str | None, started: str, topic: str) -> Path:
    """Return the path of a new crawl's record: in its JOBDIR, or beside its output.

    If several runs write to one output, the records of later runs have their start time in the
    name. A run that has left no page there gives its name up: its files are renamed.
    If the output is not a file, such as a pipe, the record goes to output/.
    """
    if job:
        return Path(job, NAME)
    if output.exists() and not output.is_file():
        output = Path("output", f"{topic}-{started}.jsonl")
    stem = output.name.removesuffix(".jsonl")
    first = output.with_name(f"{stem}{SUFFIX}")
    if first.exists() and not (output.is_file() and output.stat().st_size):
        _set_aside(first)
    return first if not first.exists() else output.with_name(f"{stem}-{started}{SUFFIX}")


def _set_aside(record: Path) -> None:
    """Add its start time to the names of the record and report of a run that has ended."""
    try:
        with Record(record) as old:
            meta = old.meta()
    except RecordError:
        return  # it is not a record
    if {"started", "ended"} <= meta.keys():
        for path in (record, record.with_suffix(REPORT), audit_path(record)):
            if path.is_file():
                rest = path.name.removeprefix(record.stem)
                path.replace(path.with_name(f"{record.stem}-{meta['started']}{rest}"))


def find_record(place: Path) -> Path:
    """Return the path of a record from its own path, a JOBDIR or a JSON lines file.

    A crawl in several processes has its records joined first. Raise RecordError if there is no
    record.
    """
    if place.is_dir():
        for join in offered("records"):
            join(place)
        if not (place / NAME).exists():
            raise RecordError(f"{place} is not the JOBDIR of a crawl with a record")
        return place / NAME
    if place.suffix == SUFFIX or not place.exists():
        return place
    found = records_of(place) or [
        path for path in records_below() if _output(path) == place.resolve()
    ]
    if not found:
        raise RecordError(
            f"no record of {place} lies beside it or in this folder: give the path of the record "
            "or the JOBDIR"
        )
    return max(found, key=lambda path: path.stat().st_mtime)


def records_of(output: Path) -> list[Path]:
    """Return the records beside an output of the crawls that have written to it."""
    stem = output.name.removesuffix(".jsonl")
    beside = [output.with_name(f"{stem}{SUFFIX}"), *output.parent.glob(f"{stem}-*{SUFFIX}")]
    beside.append(output.with_name(NAME))
    return [path for path in beside if path.is_file() and _output(path).name == output.name]


def records_below() -> list[Path]:
    """Return the records in this folder, in output/ and in JOBDIRs, the latest first.

    A crawl in shards has one.
    """
    patterns = f"output/*{SUFFIX}", f"*{SUFFIX}", f"*/{NAME}", f"*/*/{NAME}"
    found = {path for pattern in patterns for path in Path().glob(pattern) if path.is_file()}
    found = {
        path
        for path in found
        if not path.parent.name.startswith(SHARD) and path.parent.suffix != PART
    }
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def latest_record() -> Path:
    """Return the record in this folder that was written last; raise RecordError without one."""
    found = records_below()
    if not found:
        raise RecordError(
            "no crawl has left a record in this folder: give the record, the JOBDIR or the JSON "
            "lines file of a crawl"
        )
    return found[0]


def _output(path: Path) -> Path:
    """Return the full path of the JSON lines that a record's crawl wrote."""
    try:
        with Record(path) as record:
            return Path(record.meta().get("output", ""))
    except RecordError:
        return Path()


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
            left = totals(record)
    except RecordError:
        return ""
    of_limit = f" of {int(asked):,}" if asked else ""
    pages = plural(int(asked or left.pages), "page")
    found = f"{left.pages:,}{of_limit} {pages}, {left.relevant:,} relevant"
    written = float(meta.get("written", 0)) or path.stat().st_mtime  # 0: no page is written yet
    age = time() - written
    reason = meta.get("reason")
    if reason == "shutdown":
        resumes = "; the same command resumes it" if path.name == NAME else ""
        state = f"stopped   {path}: {found}{resumes}"
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
