"""Writes the pages of a run from its file: JSON lines, CSV, Parquet or Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from tres_scrapy.config.extra import require
from tres_scrapy.export.csv_table import csv_line
from tres_scrapy.export.parquet import FORMAT as PARQUET
from tres_scrapy.export.parquet import ParquetItemExporter
from tres_scrapy.export.topic_view import TopicView, view_pages
from tres_scrapy.report.record import Record
from tres_scrapy.rights.signal import as_items
from tres_scrapy.url.message import TresError

COLUMNS: Final = (
    "url",
    "final_url",
    "domain",
    "title",
    "text",
    "links",
    "anchor",
    "probability",
    "relevant",
    "fetched_at",
    "rights",
)
Pages = Iterator[dict[str, Any]]


def pages_of(record: Record, least: float | None = None, view: TopicView | None = None) -> Pages:
    """Yield the pages of a run as rows, chosen as `view_pages` does."""
    for page, stored, probability, relevant in view_pages(record, view, least):
        values = (
            page.url,
            page.final_url or page.url,
            page.domain,
            stored.title,
            stored.text,
            "\n".join(stored.links),
            page.anchor,
            probability,
            relevant,
            datetime.fromtimestamp(page.time, UTC).isoformat("T", "seconds"),
            as_items(stored.rights),
        )
        yield dict(zip(COLUMNS, values, strict=True))


def _write_json_lines(pages: Pages, file: IO[bytes]) -> None:
    for page in pages:
        file.write(json.dumps(page, ensure_ascii=False).encode() + b"\n")


def _write_csv(pages: Pages, file: IO[bytes]) -> None:
    file.write(csv_line(COLUMNS).encode())
    for page in pages:
        file.write(csv_line(map(_cell, page.values())).encode())


def _cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | bool) else str(value)


def _write_parquet(pages: Pages, file: IO[bytes]) -> None:
    exporter = ParquetItemExporter(file)
    for page in pages:
        exporter.export_item(page)
    exporter.finish_exporting()


def _write_markdown(pages: Pages, file: IO[bytes]) -> None:
    for page in pages:
        title = page["title"] or page["url"]
        said = f"P(relevant) {page['probability']:.3f}, {page['fetched_at']}"
        file.write(f"# {title}\n\n<{page['final_url']}>, {said}\n\n{page['text']}\n\n".encode())


WRITERS: Final[Mapping[str, Callable[[Pages, IO[bytes]], None]]] = {
    "jsonl": _write_json_lines,
    "csv": _write_csv,
    PARQUET: _write_parquet,
    "md": _write_markdown,
}


def check_ending(file: Path) -> str:
    """Return the format that the ending of a file names; raise TresError if there is none."""
    ending = file.suffix.removeprefix(".")
    if ending not in WRITERS:
        raise TresError(
            f"{file}: its name must end with {', '.join(f'.{each}' for each in WRITERS)}"
        )
    if ending == PARQUET:
        require(PARQUET, str(file))
    return ending
