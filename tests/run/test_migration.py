"""A file of an older version is migrated, whole or not at all."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from conftest import PROJECT
from judged import told
from recorded_run import META, crawl_of, empty_crawl, steps
from version_7 import write_version_7

from tres_scrapy.report.crawl_report import write_report
from tres_scrapy.report.record import Record
from tres_scrapy.run.database import Access, SqliteFileError
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.run_file import NAME, SCHEMA, open_to_read
from tres_scrapy.run.writer import Writer
from tres_scrapy.url.message import TresError

PAGES = 30
DIES = """
import os, signal, sys
from pathlib import Path
from tres_scrapy.run import run_file
from tres_scrapy.run.job_file import open_database
migrate = run_file.MIGRATIONS[7]
def die(cursor):
    migrate(cursor)
    os.kill(os.getpid(), signal.SIGKILL)
run_file.SCHEMA.migrations[7] = die
open_database(Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def now(tmp_path_factory):
    """A JOBDIR of today; every third page has the text of the first."""
    folder = tmp_path_factory.mktemp("now")
    crawl = crawl_of(pages=PAGES)
    journal = Journal.open(folder, {}, "20260101T000000.000000")
    writer = Writer(journal, crawl, 100.0)
    writer.begin(META, {"A": "1"}, 100.0)
    rows = iter(range(10_000))
    lease = crawl.next

    def leased(*arguments):
        decision = lease(*arguments)
        if decision is not None:
            journal.lease(crawl, decision)
        return decision

    crawl.next = leased
    for booking, number in zip(steps(crawl), rows, strict=False):
        text = "soup" if number % 3 == 0 else f"soup {number}"
        writer.note(told(booking, "a title", text, 0.75), 100.0 + number)
    writer.finish(500.0, "shutdown")
    journal.close()
    return folder


@pytest.fixture
def older(now, tmp_path):
    """The JOBDIR of version 7 that holds the same."""
    write_version_7(now / NAME, tmp_path / "older" / NAME)
    return tmp_path / "older"


def content(path):
    """Return all rows of a file of today's version, by table."""
    with closing(open_to_read(path)) as run:
        tables = run.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
        return {
            name: run.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall()  # noqa: S608 - ours
            for (name,) in tables.fetchall()
        }


def version_of(path):
    with closing(sqlite3.connect(path)) as run:
        return run.execute("PRAGMA user_version").fetchone()[0]


def test_each_version_is_migrated():
    assert [*SCHEMA.migrations] == list(range(7, SCHEMA.version))


def test_same_text_is_stored_once(now):
    texts = content(now / NAME)["text"]
    values = [value for _, _, value in texts if value is not None]
    assert len(values) == len({mark for _, mark, _ in texts}) < 0.8 * len(texts)
    with Record(now / NAME) as record:
        assert {record.text(page).text for page in record.pages(0.0)} > {"soup", "soup 1"}


def test_migrated_file_is_as_if_written_now(now, older):
    Journal.open(older, {}).close()
    assert version_of(older / NAME) == SCHEMA.version
    assert content(older / NAME) == content(now / NAME)


def test_older_crawl_is_resumed(now, older):
    pages = []
    for folder in (now, older):
        crawl, journal = empty_crawl(pages=PAGES + 5), Journal.open(folder, {})
        recover(journal, crawl)
        pages.append([crawl.pages, crawl.relevant, crawl.store.pending, crawl.next().url])
        journal.close(write=False)
    assert pages[0] == pages[1]
    assert pages[0][0] == PAGES


def test_older_file_is_read_and_left_as_it_is(now, older, tmp_path):
    before = (older / NAME).read_bytes()
    with Record(now / NAME) as one, Record(older / NAME) as other:
        assert [*map(one.text, one.pages(0.0))] == [*map(other.text, other.pages(0.0))]
        write_report(other, tmp_path / "report.html")
    assert "food" in (tmp_path / "report.html").read_text()
    assert (older / NAME).read_bytes() == before


@pytest.mark.slow
def test_kill_leaves_the_older_file_whole(older):
    before = content(older / NAME)
    command = [sys.executable, "-c", DIES, str(older)]
    assert subprocess.run(command, cwd=PROJECT, check=False).returncode == -9
    assert version_of(older / NAME) == 7
    assert content(older / NAME) == before
    Journal.open(older, {}).close()
    assert version_of(older / NAME) == SCHEMA.version


def test_failed_migration_changes_nothing(older, monkeypatch):
    def fail(cursor):
        cursor.execute("DROP TABLE page")
        raise sqlite3.OperationalError("database or disk is full")

    before = content(older / NAME)
    with monkeypatch.context() as patch:
        schema = replace(SCHEMA, migrations={7: fail})
        patch.setattr("tres_scrapy.run.job_file.SCHEMA", schema)
        with pytest.raises(TresError, match="disk is full"):
            Journal.open(older, {})
    assert version_of(older / NAME) == 7
    assert content(older / NAME) == before


@pytest.mark.parametrize("access", Access)
def test_other_tables_are_refused(older, access):
    with sqlite3.connect(older / NAME) as run:
        run.execute("CREATE TABLE notes (text)")
    run.close()
    with pytest.raises(SqliteFileError, match="tables that TRES did not create"):
        SCHEMA.open(older / NAME, access)
    assert version_of(older / NAME) == 7


def test_version_before_the_first_is_refused(now, tmp_path):
    write_version_7(now / NAME, tmp_path / NAME, version=6)
    with pytest.raises(TresError, match=r"older version of TRES \(format 6, this one reads"):
        Journal.open(tmp_path, {})
    with pytest.raises(TresError, match="older version"):
        open_to_read(tmp_path / NAME)
