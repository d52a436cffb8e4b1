"""Jobs that a test has changed, with the checksum of what they hold now."""

from tres_scrapy.job.checksum import total


def seal(connection):
    value = total(connection)
    connection.execute("INSERT OR REPLACE INTO checksum VALUES (0, ?)", (value,))
