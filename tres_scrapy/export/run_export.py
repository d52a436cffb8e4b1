"""Writes the pages of a run from its file: JSON lines, CSV, Parquet or Markdown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Final

from tres_scrapy.config.extra import require
from tres_scrapy.export.csv_table import csv_line
from tres_scrapy.export.parquet import FORMAT as PARQUET
from tres_scrapy.export.parquet import ParquetItemExporter
from tres_scrapy.export.topic_view import TopicView
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import SHARD
from tres_scrapy.rights.signal import as_items, reserved_uses
from tres_scrapy.run.page_text import StoredText
from tres_scrapy.run.run_file import NAME, Fetch
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
    """Yield the pages of a run: relevant ones, or all with a P(relevant) from `least` up.

    With `view`, P(relevant) and relevance are those of the topic of now; a page that cannot be
    relevant, whatever it is about, is not. Pages that are reserved for the use that the crawl named
    are left out.
    """
    use = {each.strip() for each in record.settings().get("TRES_USE", "").split(",")}
    with ExitStack() as opened:
        text = _texts(record, opened)
        for page in record.pages(least if view is None else 0.0):
            stored = text(page)
            if use.intersection(reserved_uses(stored.rights)):
                continue
            probability, relevant = page.probability, page.relevant
            if view is not None:
                is_out = bool(record.remark(page))
                probability, relevant = view.judge(page, stored)
                relevant = relevant and not is_out
                if not (relevant if least is None else probability >= least):
                    continue
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


def _texts(record: Record, opened: ExitStack) -> Callable[[Fetch], StoredText]:
    """Return what finds the text of a page; in a crawl in shards, its shard has it."""
    shards = record.shards()
    if shards == 1:
        return record.text
    folder = record.path.parent
    files = [folder / f"{SHARD}{shard}" / NAME for shard in range(shards)]
    parts = {
        shard: opened.enter_context(Record(file))
        for shard, file in enumerate(files)
        if file.is_file()
    }

    def text(page: Fetch) -> StoredText:
        row, shard = divmod(page.row, shards)
        return parts[shard].text(replace(page, row=row)) if shard in parts else record.text(page)

    return text


def _write_json_lines(pages: Pages, file: IO[bytes]) -> None:
    for page in pages:
        file.write(json.dumps(page, ensure_ascii=False).encode() + b"\n")


def _write_csv(pages: Pages, file: IO[bytes]) -> None:
    file.write(csv_line(COLUMNS).encode())
    for page in pages:
        file.write(csv_line(map(_cell, page.values())).encode())


def _cell(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list) else str(value)


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
