"""Labelled documents read from JSON lines: what a reward model learns from (P 3.1)."""

from __future__ import annotations

import gzip
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TextIO
from urllib.parse import urlsplit

from tres_scrapy.topic.text import read_page, tokenise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OPENERS: Final = {".xz": lzma.open, ".gz": gzip.open}
SENTENCE_LENGTH: Final = 1_000


@dataclass(frozen=True, slots=True)
class Document:
    """A labelled text; documents of one source and host are kept on one side of a split."""

    title: str
    text: str
    source: str
    host: str
    relevant: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """A file of JSON lines, or those of its lines whose field has one of the values."""

    path: Path
    field: str = ""
    values: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `FILE` or `FILE:FIELD=VALUE[,VALUE...]`; raise ValueError when there is no file."""
        if Path(text).is_file():
            return cls(Path(text))
        name, _, condition = text.rpartition(":")
        field, equals, values = condition.partition("=")
        if not equals or not Path(name).is_file():
            msg = f"documents {text!r} must be a file, or FILE:FIELD=VALUE[,VALUE...] of a file"
            raise ValueError(msg)
        return cls(Path(name), field, frozenset(values.split(",")))

    def __contains__(self, record: dict[str, Any]) -> bool:
        if not self.field:
            return True
        value = record.get(self.field)
        return not self.values.isdisjoint(map(str, value if isinstance(value, list) else [value]))


def read_documents(
    relevant: Iterable[Selection], irrelevant: Iterable[Selection]
) -> Iterator[Document]:
    """Yield the selected documents, each once; what both sides select is relevant."""
    sides = [(selection, True) for selection in relevant]
    sides += [(selection, False) for selection in irrelevant]
    for path in dict.fromkeys(selection.path for selection, _ in sides):
        chosen = [(selection, label) for selection, label in sides if selection.path == path]
        for number, record in enumerate(_records(path)):
            labels = [label for selection, label in chosen if record in selection]
            if labels:
                yield _document(record, path, number, relevant=any(labels))


class Sentences:
    """The words of the files' texts in pieces of 1,000, read anew at every pass."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._selections = [Selection(path) for path in paths]

    def __iter__(self) -> Iterator[list[str]]:
        for document in read_documents([], self._selections):
            words = tokenise(document.text)
            for start in range(0, len(words), SENTENCE_LENGTH):
                yield words[start : start + SENTENCE_LENGTH]


def _records(path: Path) -> Iterator[dict[str, Any]]:
    opener: Any = OPENERS.get(path.suffix, open)
    lines: TextIO
    with opener(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                record = json.loads(line)
            except ValueError as error:
                msg = f"{path.name!r}, line {number}: {error}"
                raise ValueError(msg) from error
            if not isinstance(record, dict) or record.keys().isdisjoint(("html", "text")):
                msg = f"{path.name!r}, line {number}: a record must have 'html' or 'text'"
                raise ValueError(msg)
            yield record


def _document(record: dict[str, Any], path: Path, number: int, *, relevant: bool) -> Document:
    url = str(record.get("url") or "")
    title, text = str(record.get("title") or ""), str(record.get("text") or "")
    if "html" in record:
        page = read_page(record["html"], url, max_links=0)
        title, text = title or page.title, page.text
    # a record that names no host stands for itself
    host = str(record.get("host") or urlsplit(url).hostname or number).removeprefix("www.")
    return Document(title, text, path.name.partition(".")[0], host, relevant)
