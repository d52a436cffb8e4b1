"""The documents that an option selects: a file or folder, or some of its records (P 3.1)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from tres_scrapy.url.message import TresError

if TYPE_CHECKING:
    from tres_scrapy.page.document_file import Record

MOST_VALUES: Final = 10_000  # of a field that are remembered for a hint
NAMED: Final = 5
CLOSE: Final = 0.6  # nearness


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
            msg = (
                f"documents {text!r} must be a file or folder, "
                "or FILE:FIELD=VALUE[,VALUE...] of a file"
            )
            raise TresError(msg)
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
