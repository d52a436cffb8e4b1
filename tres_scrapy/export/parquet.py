"""The exporter of Scrapy's feeds that writes Apache Parquet: `-O pages.parquet`."""

from __future__ import annotations

import logging
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
TEXT: Final = (str, bytes, type(None))  # what a column of text holds as it is
# What Arrow raises for a value that has no type, or not that of its column.
MISFITS: Final = (ValueError, TypeError, OverflowError, NotImplementedError)

logger = logging.getLogger(__name__)


def check_parquet(settings: BaseSettings) -> None:
    """Raise ConfigError if a feed in Parquet cannot be written."""
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
        self._warned: set[str] = set()  # names of columns
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

        rows, self._rows, self._size = self._rows, [], 0
        if self._writer is None:
            schema = _schema(rows, self._types)
            self._writer = parquet.ParquetWriter(self._file, schema, compression="zstd")
        schema = self._writer.schema
        columns = [self._column([row.get(each.name) for row in rows], each) for each in schema]
        self._writer.write_table(pa.Table.from_arrays(columns, schema=schema))

    def _column(self, values: list[Any], field: pa.Field) -> pa.Array:
        """Return values as a column, empty where they do not fit: a warning names it once."""
        import pyarrow as pa  # noqa: PLC0415 - as above

        if pa.types.is_string(field.type):
            values = [each if isinstance(each, TEXT) else str(each) for each in values]
        try:
            return pa.array(values, type=field.type)
        except MISFITS:
            odd = [not _fits(each, field.type) for each in values]
        if field.name not in self._warned:
            self._warned.add(field.name)
            logger.warning(
                "The Parquet column %r holds %s: what does not fit is left empty, such as %.99r",
                field.name,
                field.type,
                values[odd.index(True)],
            )
        fitting = [None if out else each for each, out in zip(values, odd, strict=True)]
        return pa.array(fitting, type=field.type)


def _fits(value: Any, kind: pa.DataType) -> bool:
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        pa.array([value], type=kind)
    except MISFITS:
        return False
    return True


def _schema(rows: list[dict[str, Any]], types_: dict[str, pa.DataType]) -> pa.Schema:
    """Return the columns of rows; one without any value, or with a mixture, holds text."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    names = list(dict.fromkeys(name for row in rows for name in row))
    kinds = [types_.get(name) or _kind([row.get(name) for row in rows]) for name in names]
    return pa.schema(list(zip(names, kinds, strict=True)))


def _kind(values: list[Any]) -> pa.DataType:
    import pyarrow as pa  # noqa: PLC0415 - as above

    try:
        kind = pa.array(values).type
    except MISFITS:
        return pa.string()
    is_empty = pa.types.is_null(kind) or (pa.types.is_struct(kind) and not kind.num_fields)
    return pa.string() if is_empty else kind


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
