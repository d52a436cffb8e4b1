"""Takes forgotten pages out of the files beside a run; each is replaced when it is complete."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, Final

from fastwarc.warc import ArchiveIterator

from tres_scrapy.run.forgotten import Forgotten
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import drop_torn_line, whole_file

NAMES: Final = "url", "final_url"  # of a page, in items and tables
SITE: Final = "domain"  # the first column of a table of domains


def forget_lines(path: Path, forgotten: Forgotten) -> int:
    """Rewrite JSON lines without forgotten pages, also in paths; return how many there were."""
    drop_torn_line(path)
    count = 0
    with path.open(encoding="utf-8") as lines, whole_file(path) as file:
        for line in lines:
            item = json.loads(line)
            if _is_gone(item, forgotten):
                count += 1
                continue
            cleaned = _cleaned(item, forgotten)
            text = line if cleaned == item else f"{json.dumps(cleaned, ensure_ascii=False)}\n"
            file.write(text.encode())
    return count


def forget_table(path: Path, forgotten: Forgotten) -> int:
    """Rewrite a CSV table without forgotten pages or sites; return how many there were."""
    rows = list(csv.DictReader(StringIO(path.read_bytes().decode(), newline="")))
    kept = [
        row
        for row in rows
        if not _is_gone(row, forgotten) and not forgotten.covers(f"http://{row.get(SITE, '')}/")
    ]
    if len(kept) < len(rows):
        text = StringIO(newline="")
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
        with whole_file(path) as file:
            file.write(text.getvalue().encode())
    return len(rows) - len(kept)


def forget_records(path: Path, forgotten: Forgotten) -> int:
    """Rewrite a WARC file without the records of forgotten URLs; return how many there were.

    Other records are copied byte by byte. Raise TresError if the file cannot be read to its end.
    """
    starts, gone = list[int](), set[int]()
    with path.open("rb") as file:
        for record in ArchiveIterator(file, parse_http=False):
            starts.append(record.stream_pos)
            url = record.headers.get("WARC-Target-URI") or ""
            if forgotten.covers(canonicalise(url) or url):
                gone.add(record.stream_pos)
    if path.stat().st_size and (not starts or starts[0]):
        raise TresError(f"{path} is not a WARC file that TRES has written")
    if not gone:
        return 0
    ends = [*starts[1:], path.stat().st_size]
    with path.open("rb") as source, whole_file(path) as file:
        for start, end in zip(starts, ends, strict=True):
            source.seek(start)
            if start not in gone:
                file.write(source.read(end - start))
    return len(gone)


def _is_gone(row: dict[str, Any], forgotten: Forgotten) -> bool:
    return any(forgotten.covers(row[name]) for name in NAMES if row.get(name))


def _cleaned(value: Any, forgotten: Forgotten) -> Any:
    """Return a value of an item without the URLs of forgotten pages."""
    if isinstance(value, dict):
        return {key: _cleaned(each, forgotten) for key, each in value.items()}
    if isinstance(value, list):
        return [_cleaned(each, forgotten) for each in value]
    if isinstance(value, str) and forgotten.covers(value):
        return ""
    return value


FORGETTERS: Final[dict[str, Callable[[Path, Forgotten], int]]] = {
    ".jsonl": forget_lines,
    ".csv": forget_table,
    "-domains.csv": forget_table,
    ".warc.gz": forget_records,
}
