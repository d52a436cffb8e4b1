"""The changes of the file of a run from version to version; each runs inside a transaction.

If the tables in `run_file.py` change, raise its version and add a function here. A function names
the tables and columns of its own versions only. The first version that can be migrated is 7.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Final

from tres_scrapy.run.database import Migration
from tres_scrapy.run.page_text import mark_of


def _store_texts_once(cursor: sqlite3.Cursor) -> None:
    """From 7 to 8: pages with the same text share it."""
    cursor.execute("ALTER TABLE text RENAME TO text_7")
    cursor.execute("CREATE TABLE text (row INTEGER PRIMARY KEY, mark INTEGER NOT NULL, value BLOB)")
    cursor.execute("CREATE INDEX text_by_mark ON text (mark) WHERE value NOTNULL")
    found = cursor.connection.execute("SELECT row, value FROM text_7 ORDER BY row")
    known: set[int] = set()
    for row, value in found:
        mark = mark_of(value)
        text = None if mark in known else value
        cursor.execute("INSERT INTO text VALUES (?, ?, ?)", (row, mark, text))
        known.add(mark)
    cursor.execute("DROP TABLE text_7")


def _add_rights(cursor: sqlite3.Cursor) -> None:
    """From 8 to 9: what was said about the use of a page."""
    cursor.execute("CREATE TABLE rights (row INTEGER PRIMARY KEY, value TEXT NOT NULL)")


MIGRATIONS: Final[Mapping[int, Migration]] = {7: _store_texts_once, 8: _add_rights}
