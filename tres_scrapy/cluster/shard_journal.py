"""The journal of a shard, with the links that travel between shards."""

from __future__ import annotations

import math
import sqlite3
from itertools import islice

from tres_scrapy.cluster.outbox import Outbox
from tres_scrapy.cluster.shard_crawl import ShardCrawl
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier import feature
from tres_scrapy.frontier.recovery import restore_guests
from tres_scrapy.run.database import Database
from tres_scrapy.run.journal import Journal


class ShardJournal(Journal):
    """Saves the crawl of a shard with its outbox and the pages of other shards."""

    def __init__(
        self, database: Database, *, is_durable: bool = True, keeps_texts: bool = True
    ) -> None:
        super().__init__(database, is_durable=is_durable, keeps_texts=keeps_texts)
        self.outbox = Outbox(database)
        self._guests = 0  # pages of other shards that are saved
        self._next = 0  # after the next commit

    def survive_power_cuts(self) -> None:
        """Wait for the disk at each transaction from now on."""
        self.database.execute("PRAGMA synchronous = FULL")

    def receive(self, crawl: Crawl, sender: int, number: int) -> None:
        """Save the links that a crawl received from another shard, up to a batch's number."""
        with self.transaction(crawl) as cursor:
            self.outbox.receive(cursor, sender, number)

    def commit(self) -> None:
        """Save what was written; batches that have arrived leave the outbox."""
        super().commit()
        self.outbox.keep()
        self._guests = self._next

    def _undo(self) -> None:
        super()._undo()
        self.outbox.undo()

    def _write_more(self, cursor: sqlite3.Cursor, crawl: Crawl | None) -> None:
        """Save the pages of other shards and the links sent to them."""
        guests = self._guests
        if isinstance(crawl, ShardCrawl):
            new = islice(crawl.store.guests.items(), guests, None)
            rows = [
                (row, *path[:3], None if math.isinf(path.distance) else path.distance)
                for row, path in new
            ]
            cursor.executemany("INSERT INTO guest_path VALUES (?, ?, ?, ?, ?)", rows)
            guests += len(rows)
            self.outbox.send(cursor, crawl.router.take())
        self.outbox.remove_arrived(cursor)
        self._next = guests

    def restore_more(self, crawl: Crawl) -> None:
        """Restore which samples are pages of other shards, each with the path to it."""
        found = self.database.execute("SELECT * FROM guest_path ORDER BY row").fetchall()
        guests = [
            (int(row), feature.Path(reward, length, relevant, math.inf if far is None else far))
            for row, reward, length, relevant, far in found
        ]
        if not all(path.distance >= 1 and path.length >= 1 for _, path in guests):
            raise ValueError("the path to a page of another shard is impossible")
        restore_guests(crawl.store, guests)
        self._guests = len(guests)
