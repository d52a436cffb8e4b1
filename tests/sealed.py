"""Jobs that a test has changed, with the checksum of what they hold now."""

import sqlite3
from contextlib import suppress

from tres_scrapy.run.checksum import total


def seal(connection):
    with suppress(sqlite3.OperationalError):  # a text that is not UTF-8
        value = total(connection)
        connection.execute("INSERT OR REPLACE INTO checksum VALUES (0, ?)", (value,))
