"""Labelled training documents: those that options select, without duplicates (P 3.1)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import urlsplit

from tqdm import tqdm

from tres_scrapy.page.document_file import (
    Unreadable,
    is_text,
    read_pages,
    read_records,
    record_page,
)
from tres_scrapy.page.place import tokenise
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tres_scrapy.page.document_file import Record

SENTENCE_LENGTH: Final = 1_000
BLOCK: Final = 1_000_000  # bytes of plain text read at a time
NAMED_FAULTS: Final = 5
NO_ANSWERS: Final[Mapping[str, bool]] = {}
MOST_VALUES: Final = 10_000  # of a field that are remembered for a hint
NAMED: Final = 5
CLOSE: Final = 0.6  # nearness


@dataclass(frozen=True, slots=True)
class Document:
    """A labelled text; a split never divides the documents of a host."""

    title: str
    text: str
    source: str
    host: str
    relevant: bool
    url: str = ""  # if known, else the file
    language: str = ""  # ISO 639-1, "" if unknown


@dataclass(slots=True)
class Census:
    """The number of documents read, and of those left out, by reason."""

    read: int = 0
    unreadable: int = 0
    empty: int = 0
    duplicates: int = 0
    clashes: int = 0
    foreign: Counter[str] = field(default_factory=Counter)
    relevant: int = 0
    irrelevant: int = 0
    faults: list[Unreadable] = field(default_factory=list)

    def add_fault(self, fault: Unreadable) -> None:
        """Count an unreadable document; the first few are named in the summary."""
        self.unreadable += 1
        if len(self.faults) < NAMED_FAULTS:
            self.faults.append(fault)

    def __str__(self) -> str:
        foreign = ", ".join(f"{code} {count}" for code, count in self.foreign.most_common())
        lines = [
            f"{self.read} documents read: {self.relevant} relevant, {self.irrelevant} irrelevant",
            f"{self.duplicates} left out as duplicates, {self.clashes} with the other label",
            f"{self.empty} left out without words",
            f"{self.foreign.total()} left out in another language: {foreign}",
            f"{self.unreadable} unreadable",
        ]
        kept = [line for line in lines if not line.startswith("0 ")]
        unnamed = self.unreadable - len(self.faults)
        return "\n".join(
            [*kept, *(f"  {fault}" for fault in self.faults)]
            + ([f"  and {unnamed} more"] if unnamed else [])
        )


def read_documents(
    relevant: Iterable[Selection],
    irrelevant: Iterable[Selection],
    *,
    language: str = "en",
    answers: Mapping[str, bool] = NO_ANSWERS,
) -> tuple[list[Document], Census]:
    """Return the selected documents in `language` ("" for any), without duplicates and empty ones.

    A document or a copy that both sides select is relevant, but `answers` win for their URLs,
    before or after redirects, and for copies of those documents.
    Documents of unknown language are kept. Raise TresError if a selection is empty or more than
    half of a file is unreadable.
    """
    census = Census()
    kept: dict[bytes, tuple[bool, Document]] = {}  # whether it is answered first
    for answered, document in tqdm(
        _selected(relevant, irrelevant, census, answers), "reading", unit=" documents", disable=None
    ):
        words = tokenise(f"{document.title} {document.text}")
        mark = blake2b(" ".join(words).encode(), digest_size=16).digest()
        if not words:
            census.empty += 1
        elif language and document.language not in {language, ""}:
            census.foreign[document.language] += 1
        elif mark in kept:
            census.duplicates += 1
            census.clashes += kept[mark][1].relevant is not document.relevant
            pair = kept[mark], (answered, document)
            kept[mark] = max(pair, key=lambda each: (each[0], each[1].relevant))
        else:
            kept[mark] = answered, document
    documents = [document for _, document in kept.values()]
    census.relevant = sum(document.relevant for document in documents)
    census.irrelevant = len(documents) - census.relevant
    return documents, census


class Sentences:
    """The words of texts in pieces of 1,000; each iteration reads the files again."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = list(paths)

    def __iter__(self) -> Iterator[list[str]]:
        """Yield lists of words; raise TresError at the first unreadable document."""
        for path in self._paths:
            for text in _plain_text(path) if is_text(path) else _texts(path):
                words = tokenise(text)
                for start in range(0, len(words), SENTENCE_LENGTH):
                    yield words[start : start + SENTENCE_LENGTH]


def _plain_text(path: Path) -> Iterator[str]:
    with open_bytes(path) as lines:
        while block := lines.readlines(BLOCK):
            yield b"".join(block).decode("utf-8", "replace")


def _texts(path: Path) -> Iterator[str]:
    for page in read_pages(path):
        if isinstance(page, Unreadable):
            raise TresError(str(page))
        yield page.text


def _selected(
    relevant: Iterable[Selection],
    irrelevant: Iterable[Selection],
    census: Census,
    answers: Mapping[str, bool],
) -> Iterator[tuple[bool, Document]]:
    """Yield whether each selected document is answered, and the document."""
    sides = [(selection, True) for selection in relevant]
    sides += [(selection, False) for selection in irrelevant]
    for path in dict.fromkeys(selection.path for selection, _ in sides):
        # relevant ones last: they override the same selection of the other side
        chosen = {
            selection: label for selection, label in reversed(sides) if selection.path == path
        }
        for record, document in _read(path, chosen, census):
            # the live page answers the URL after redirects, an item has both
            answer = answers.get(document.url, answers.get(str(record.get("final_url"))))
            yield (
                answer is not None,
                document if answer is None else replace(document, relevant=answer),
            )


def _read(
    path: Path, chosen: dict[Selection, bool], census: Census
) -> Iterator[tuple[Record, Document]]:
    """Yield the selected records of one path; raise TresError if most are unreadable."""
    faults: list[Unreadable] = []
    found = Counter[Selection]()
    inventory = Inventory(frozenset(selection.field for selection in chosen))
    readable = 0
    for number, record in enumerate(read_records(path)):
        if isinstance(record, Unreadable):
            faults.append(record)
            census.add_fault(record)
            continue
        readable += 1
        inventory.add(record)
        takers = [selection for selection in chosen if record in selection]
        found.update(takers)
        if takers:
            census.read += 1
            relevant = any(chosen[selection] for selection in takers)
            yield record, _document(record, path.name, number, relevant=relevant)
    if len(faults) > readable:
        msg = f"{path}: {len(faults)} of {len(faults) + readable} unreadable, such as {faults[0]}"
        raise TresError(msg)
    for selection in chosen:
        if not found[selection]:
            raise TresError(f"{selection} selects no documents: {inventory.hint(selection)}")


def _document(record: Record, file: str, number: int, *, relevant: bool) -> Document:
    page = record_page(record)
    # without a host, a document counts as a separate host
    host = str(record.get("host") or _host(str(record.get("url") or "")) or f"{file}#{number}")
    source, host = file.partition(".")[0], host.removeprefix("www.")
    return Document(page.title, page.text, source, host, relevant, page.url, page.language)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents of a file or folder, or only those whose `field` has one of `values`.

    In a value, * stands for any text.
    """

    path: Path
    field: str = ""
    values: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `PATH` or `PATH:FIELD=VALUE[,VALUE...]`; raise TresError if there is no PATH."""
        if Path(text).exists():
            return cls(Path(text))
        name, _, condition = text.rpartition(":")
        field, equals, values = condition.partition("=")
        if not equals or not Path(name).exists():
            raise TresError(
                f"documents {text!r} must be a file or folder, "
                "or FILE:FIELD=VALUE[,VALUE...] of a file"
            )
        return cls(Path(name), field, frozenset(values.split(",")))

    def __contains__(self, record: Record) -> bool:
        if not self.field:
            return True
        found = _values(record, self.field)
        return any(_pattern(value).fullmatch(each) for value in self.values for each in found)

    def __str__(self) -> str:
        condition = f":{self.field}={','.join(sorted(self.values))}" if self.field else ""
        return f"{self.path}{condition}"


@dataclass(slots=True)
class Inventory:
    """The fields of records and the values of the selected fields, for a hint."""

    wanted: frozenset[str]
    fields: Counter[str] = field(default_factory=Counter)
    values: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Note the fields of a record."""
        self.fields.update(record.keys())
        for name in self.wanted & record.keys():
            known = self.values.setdefault(name, Counter())
            if len(known) < MOST_VALUES:
                known.update(_values(record, name))

    def hint(self, selection: Selection) -> str:
        """Return what to write instead of a selection that selects nothing."""
        if not self.fields:
            return "it holds no documents"
        if not selection.field:
            return "check the path"
        known = self.values.get(selection.field)
        if known is None:
            return f"its fields are {', '.join(sorted(self.fields.keys() - {'place'}))}"
        wanted = [value.replace("*", "").lower() for value in sorted(selection.values)]
        near = {value: max(_nearness(value, each) for each in wanted) for value in known}
        best = [value for value in sorted(near, key=near.__getitem__)[::-1] if near[value] >= CLOSE]
        names = best[:NAMED] or [value for value, _ in known.most_common(NAMED)]
        named = ", ".join(map(repr, names))
        return f"values of {selection.field!r} are {named}, ...; * stands for any text"


def _values(record: Record, name: str) -> list[str]:
    value = record.get(name)
    return [str(each) for each in value] if isinstance(value, list) else [str(value)]


def _nearness(value: str, wanted: str) -> float:
    """Return how alike a text is to a value or to one of its words, from 0 to 1."""
    parts = [value, *re.split(r"\W+|_", value)]
    return max(SequenceMatcher(None, wanted, part.lower()).ratio() for part in parts)


@cache
def _pattern(value: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, value.split("*"))), re.DOTALL)
