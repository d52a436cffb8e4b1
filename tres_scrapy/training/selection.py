"""The documents that an option selects: a file or folder, or some of its records (P 3.1)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from tres_scrapy.training.source import Record


@dataclass(frozen=True, slots=True)
class Selection:
    """The documents of a file or folder, or only those whose `field` has one of `values`."""

    path: Path
    field: str = ""
    values: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `PATH` or `PATH:FIELD=VALUE[,VALUE...]`; raise ValueError if there is no PATH."""
        if Path(text).exists():
            return cls(Path(text))
        name, _, condition = text.rpartition(":")
        field, equals, values = condition.partition("=")
        if not equals or not Path(name).exists():
            msg = (
                f"documents {text!r} must be a file or folder, "
                "or FILE:FIELD=VALUE[,VALUE...] of a file"
            )
            raise ValueError(msg)
        return cls(Path(name), field, frozenset(values.split(",")))

    def __contains__(self, record: Record) -> bool:
        if not self.field:
            return True
        value = record.get(self.field)
        return not self.values.isdisjoint(map(str, value if isinstance(value, list) else [value]))

    def __str__(self) -> str:
        condition = f":{self.field}={','.join(sorted(self.values))}" if self.field else ""
        return f"{self.path}{condition}"
