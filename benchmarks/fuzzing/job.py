"""The fuzzing target that resumes killed jobs with a damaged file."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from scrapy import Request

from fuzzing.mutation import NUMBERS, json_text
from fuzzing.target import check_line
from fuzzing.text import OwnSpider, own_request
from tres_scrapy.agent import link_learner
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import AgentOptions, LearningOptions
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.extensions.job import Job
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.items import RelevantPage
from tres_scrapy.links.code import CODES, RaggedArray
from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.text import Page
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.run_file import NAME
from tres_scrapy.topic.pack import Judged
from tres_scrapy.url.message import TresError

STEPS: Final = 14  # of the job, before it was killed
CHECKPOINT: Final = 5  # experiences between two states of the link model
PAGE_SIZE: Final = 4096  # bytes, SQLite's
BYTES: Final = re.compile(r"([01]) (\d+) (\d+) (?:@(\d+)|((?:[0-9a-f]{2})*))")
ODD_VALUES: Final = [
    "NULL",
    "''",
    "'a'",
    "x''",
    "x'ff'",
    "CAST(x'ff' AS TEXT)",
    "1e999",
    "-1e999",
    "0.5",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "zeroblob(2000000)",
    "hex(zeroblob(2000000))",
    "4294967295",
    "2000000000",
    "'http://a.test/'",
    "'page'",
    "'query'",
    "char(0)",
    "'1e999'",
]
ODD_BYTES: Final = [
    *(np.float32(value).tobytes() for value in (np.nan, np.inf, -np.inf, 3e38, -0.0, 1.0)),
    *(np.int32(value).tobytes() for value in (-1, 0, 1, 5, 2**31 - 1, -(2**31))),
    b"",
    b"\0\0\0\0\0",
]


class DamagedJob:
    """A killed job with a damaged file; it must resume or raise TresError.

    Each line of an input is SQL, "FILE START END HEX" (replace bytes), or "FILE START END @PLACE"
    (copy bytes from another place).
    """

    name = "recover"
    share = 0.02

    def __init__(self, directory: Path) -> None:
        self._spider = OwnSpider()
        patch.object(link_learner, "CHECKPOINT", CHECKPOINT).start()
        self._directory = directory / "changed"
        self._directory.mkdir(parents=True)
        self._paths = [self._directory / NAME, self._directory / f"{NAME}-wal"]
        self._good = _written_job(directory / "good", self._spider)
        self._restore()
        with sqlite3.connect(self._paths[0]) as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            tables = {name: _rows(connection, name) for (name,) in names.fetchall()}
        self._tables = {name: rows for name, rows in tables.items() if rows}
        connection.close()

    def draw(self, random: Random) -> str:
        line = self._bytes if random.random() < 0.3 else self._statement
        return "\n".join(line(random) for _ in range(random.choice([1, 1, 1, 2])))

    def check(self, text: str) -> None:
        self._restore()
        for line in text.split("\n"):
            self._change(line)
        try:
            journal = Journal.open(self._directory, {"topic": "food"})
            try:
                _go_on(Job(journal, self._spider, _ignored), self._spider)
            finally:
                journal.database.close()
        except TresError as error:
            check_line(error)

    def _restore(self) -> None:
        for path, data in zip(self._paths, self._good, strict=True):
            path.write_bytes(data)

    def _change(self, line: str) -> None:
        change = BYTES.fullmatch(line)
        if change is not None:
            path, start, end = self._paths[int(change[1])], int(change[2]), int(change[3])
            data = path.read_bytes() if path.exists() else b""
            source = int(change[4] or 0)
            copied = data[source : source + min(end - start, PAGE_SIZE)]
            new = copied if change[4] else bytes.fromhex(change[5])
            path.write_bytes(data[:start] + new + data[max(start, end) :])
        elif line.startswith(("UPDATE", "DELETE")):
            connection = sqlite3.connect(self._paths[0], timeout=0, isolation_level=None)
            with contextlib.suppress(sqlite3.Error, sqlite3.Warning, ValueError):
                connection.execute("PRAGMA synchronous = OFF")
                connection.execute(line)
            connection.close()

    def _bytes(self, random: Random) -> str:
        file = random.randrange(2)
        data = self._good[file]
        start = random.randrange(100 if random.random() < 0.1 else len(data))
        end = min(len(data), start + random.choice([0, 1, 1, 1, 2, 4, 8, PAGE_SIZE, len(data)]))
        page = random.randrange(len(data) // PAGE_SIZE) * PAGE_SIZE
        new = random.choice(["", f"@{page}", f"{random.randrange(256):02x}", "ffffffff"])
        return f"{file} {start} {end} {new}"

    def _statement(self, random: Random) -> str:
        table = random.choice(list(self._tables))
        rows = self._tables[table]
        number = random.randrange(len(rows))
        where = f" WHERE rowid = (SELECT rowid FROM {table} LIMIT 1 OFFSET {number})"
        where = where if random.random() < 0.8 else ""
        if random.random() < 0.1:
            return f"DELETE FROM {table}{where}"
        column, old = random.choice(list(rows[number].items()))
        value = self._value(random, table, column, old)
        return f"UPDATE OR REPLACE {table} SET {column} = {value}{where}"

    @staticmethod
    def _value(random: Random, table: str, column: str, old: Any) -> str:
        """Return an SQL expression for a value that is wrong for a column."""
        kind = random.randrange(5)
        if kind == 0:
            return random.choice(ODD_VALUES)
        if kind == 1:
            place = random.randrange(30)
            return f"(SELECT {column} FROM {table} LIMIT 1 OFFSET {place})"
        if isinstance(old, bytes) and not _is_json(old):
            start, new = random.randrange(len(old) + 1), random.choice(ODD_BYTES)
            before, after = f"substr({column}, 1, {start})", f"substr({column}, {start + 5})"
            return f"CAST({before} || x'{new.hex()}' || {after} AS BLOB)"
        if isinstance(old, (str, bytes)) and _is_json(old):
            text = json_text(random, json.loads(old)).encode("utf-8", "surrogatepass")
            return f"CAST(x'{text.hex()}' AS {'BLOB' if isinstance(old, bytes) else 'TEXT'})"
        return str(random.choice([*NUMBERS, *range(40), 0.5, -0.5, 1e300]))


def _written_job(directory: Path, spider: OwnSpider) -> list[bytes]:
    """Return the files of a job that was killed after some pages."""
    journal = Journal.open(directory, {"topic": "food"})
    job, crawl = Job(journal, spider, _ignored), _new_crawl()
    rows = crawl.add_seeds(Outlinks(["http://h0.test/0"], [""], np.zeros((1, 3), dtype=np.float32)))
    job.keep({int(rows[0]): own_request(spider, "http://h0.test/0")})
    for number in range(STEPS):
        _step(crawl, job, spider, number)
        if number == STEPS - 4:  # later steps are in the write-ahead log only
            journal.commit()
            journal.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    decision = crawl.next()
    assert decision is not None
    job.write(job.journal.lease, crawl, decision)
    for url in ("http://h1.test/moved", "http://new.test/"):
        assert crawl.redirect(decision.row, url)
        job.write(job.journal.redirect, crawl, decision.row)
    files = [(directory / name).read_bytes() for name in (NAME, f"{NAME}-wal")]
    journal.database.close()
    return files


def _go_on(job: Job, spider: OwnSpider) -> None:
    """Do what a resumed crawl does."""
    crawl = _new_crawl()
    requests = job.requests()
    job.recover(crawl, requests)
    for number in range(STEPS, STEPS + 3):
        store = crawl.store
        assert store.pending == len(store.pending_rows())
        _step(crawl, job, spider, number)
    for request in requests.values():
        assert isinstance(request, Request)
    for item in job.unexported:
        json.dumps(asdict(item), ensure_ascii=False).encode()


def _step(crawl: Crawl, job: Job, spider: OwnSpider, number: int) -> None:
    """Lease a sample and book it with its links, like the scheduler and the middlewares."""
    decision = crawl.next()
    if decision is None or not job.write(job.journal.lease, crawl, decision):
        return
    row, store = decision.row, crawl.store
    url = Request(store.url(row)).url
    if number % 5 == 4:
        job.book(crawl, crawl.book(row, Failure("http_404")))
        return
    path, anchor, hosts = store.trail(row), store.anchors[row], range(number, number + 3)
    links = [f"http://h{host % 7}.test/{number}/{host}" for host in hosts]
    actions = np.random.default_rng(number).random((3, 3), dtype=np.float32)
    cues = RaggedArray.of([[host, CODES - 1 - number] for host in hosts])
    outlinks = Outlinks(links, ["anchor"] * 3, actions, cues)
    page = Page(url, "", f"{number} page {'word ' * number}", ())
    mark, relevant = fingerprint(page), bool(number % 2)
    booking = crawl.book(row, Judged(page, 0.9, actions, mark=mark, on_topic=relevant), outlinks)
    rows = booking.outlinks.tolist()
    job.keep({row: own_request(spider, store.url(row)) for row in rows})
    item = RelevantPage(
        url,
        url,
        "Brie",
        "cheese",
        "en",
        0.9,
        len(path),
        path,
        anchor,
        decision.q_value,
        decision.leaf,
        "2024-01-01T00:00:00",
        200,
    )
    json.dumps(asdict(item), ensure_ascii=False).encode()
    job.book(crawl, booking, [item] if number % 2 else [])


def _new_crawl() -> Crawl:
    learning = LearningOptions(exploration_steps=4, replay_capacity=12, batch_size=4)
    setup = PolicyInputs(learning=learning, agent=AgentOptions(hidden=(4, 3)))
    store = SampleStore(DomainLedger(Cap(5, 5)))
    return Crawl(store, make_policy("tres", store, setup))


def _rows(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    found = connection.execute(f"SELECT * FROM {table}")
    names = [column for column, *_ in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _is_json(value: str | bytes) -> bool:
    with contextlib.suppress(ValueError):
        return isinstance(json.loads(value), (list, dict))
    return False


def _ignored(reason: str) -> None:
    """Stop nothing: the crawl of an input ends by itself."""
