"""The exporter of Scrapy's feeds that writes Apache Parquet: `-O pages.parquet`."""

from __future__ import annotations

import types
from dataclasses import is_dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Union, get_args, get_origin, get_type_hints

from scrapy.exporters import BaseItemExporter
from scrapy.settings import BaseSettings

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.extra import require

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT: Final = "parquet"
ROWS: Final = 1_000  # of a row group: they wait in memory
CHARACTERS: Final = 16_000_000  # the same


def check_parquet(settings: BaseSettings) -> None:
    """Raise ExtraError or ConfigError if a feed in Parquet cannot be written."""
    for name, options in settings.getdict("FEEDS").items():
        if options.get("format") != FORMAT:
            continue
        require(FORMAT, f"the feed {str(name)!r}")
        path = Path(str(name).removeprefix("file://"))
        if not options.get("overwrite") and path.is_file() and path.stat().st_size:
            raise ConfigError(
                f"FEEDS {str(name)!r}: nothing can be added to a Parquet file: name another file, "
                "or replace it with -O"
            )


class ParquetItemExporter(BaseItemExporter):
    """Writes items as rows; the columns are the fields of the first item.

    Their types are those that a dataclass declares, else those of the values of the first rows.
    """

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(dont_fail=True, **options)
        self._file = file
        self._rows: list[dict[str, Any]] = []
        self._size = 0  # characters in them
        self._types: dict[str, pa.DataType] = {}
        self._writer: Any = None

    def export_item(self, item: Any) -> None:
        """Add an item; it is written with the rows around it."""
        if not self._rows and self._writer is None and is_dataclass(item):
            self._types = _declared(type(item))
        row = dict(self.get_serialized_fields(item))
        self._rows.append(row)
        self._size += sum(len(value) for value in row.values() if isinstance(value, str))
        if len(self._rows) >= ROWS or self._size >= CHARACTERS:
            self._write()

    def finish_exporting(self) -> None:
        """Write the last rows and the end of the file."""
        if self._rows:
            self._write()
        if self._writer is not None:
            self._writer.close()

    def _write(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 - of an extra
        from pyarrow import parquet  # noqa: PLC0415 - as above

        if self._writer is None:
            schema = _schema(self._rows, self._types)
            self._writer = parquet.ParquetWriter(self._file, schema, compression="zstd")
        rows, self._rows, self._size = self._rows, [], 0
        self._writer.write_table(pa.Table.from_pylist(rows, schema=self._writer.schema))


def _schema(rows: list[dict[str, Any]], types_: dict[str, pa.DataType]) -> pa.Schema:
    """Return the columns of rows; one without any value holds text."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    names = list(dict.fromkeys(name for row in rows for name in row))
    fields = []
    for name in names:
        kind = types_.get(name) or pa.array([row.get(name) for row in rows]).type
        fields.append(pa.field(name, pa.string() if pa.types.is_null(kind) else kind))
    return pa.schema(fields)


def _declared(item: type) -> dict[str, pa.DataType]:
    """Return the column type of each field of a dataclass whose type has one."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    known = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    known |= {list[str]: pa.list_(pa.string())}
    found = {}
    for name, hint in get_type_hints(item).items():
        union = get_origin(hint) in {Union, types.UnionType}
        kinds = [kind for kind in get_args(hint) if kind is not type(None)] if union else [hint]
        if len(kinds) == 1 and kinds[0] in known:
            found[name] = known[kinds[0]]
    return found
