"""The file of a run as version 7 of it was, made from one of today."""

import sqlite3
from contextlib import closing

from tres_scrapy.run.run_file import SCHEMA, open_to_read

TABLES = """\
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE page (
    step INTEGER PRIMARY KEY, row INTEGER NOT NULL UNIQUE, parent INTEGER, time REAL NOT NULL,
    url TEXT NOT NULL, final_url TEXT, domain TEXT NOT NULL, title TEXT NOT NULL,
    anchor TEXT NOT NULL, kind TEXT NOT NULL, relevant INTEGER NOT NULL, copy INTEGER NOT NULL,
    reward REAL NOT NULL, probability REAL, grade REAL, x BLOB NOT NULL, chosen TEXT NOT NULL,
    leaf INTEGER, splits INTEGER, q_value REAL, samples INTEGER, leaves INTEGER, link TEXT,
    text TEXT NOT NULL, url_number INTEGER NOT NULL, host INTEGER NOT NULL,
    first INTEGER NOT NULL, outlinks INTEGER NOT NULL, sampled INTEGER, mark BLOB
);
CREATE TABLE text (row INTEGER PRIMARY KEY, value BLOB NOT NULL);
CREATE INDEX page_incomplete ON page (step) WHERE sampled IS NULL;
CREATE TABLE guest (row INTEGER PRIMARY KEY, url TEXT NOT NULL);
CREATE TABLE name (code INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE rivals (step INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE curve (
    step INTEGER PRIMARY KEY, time REAL NOT NULL, pages INTEGER NOT NULL,
    relevant INTEGER NOT NULL, domains INTEGER NOT NULL, frontier INTEGER NOT NULL,
    leaves INTEGER, rate REAL NOT NULL, loss REAL
);
CREATE TABLE health (time REAL PRIMARY KEY, memory INTEGER, answers TEXT NOT NULL);
CREATE TABLE split (
    number INTEGER PRIMARY KEY, step INTEGER NOT NULL, leaf INTEGER NOT NULL,
    feature INTEGER NOT NULL, threshold REAL NOT NULL, reduction REAL NOT NULL
);
CREATE TABLE snapshot (name TEXT PRIMARY KEY, step INTEGER NOT NULL, value TEXT NOT NULL);
CREATE TABLE score (
    row INTEGER NOT NULL, topic TEXT NOT NULL, value REAL NOT NULL, PRIMARY KEY (row, topic)
) WITHOUT ROWID;
CREATE TABLE remark (row INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE batch (
    number INTEGER PRIMARY KEY, samples BLOB NOT NULL, anchors TEXT NOT NULL,
    urls TEXT NOT NULL, hosts TEXT NOT NULL, cues BLOB NOT NULL, counts BLOB NOT NULL
);
CREATE TABLE state (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE lease (
    row INTEGER PRIMARY KEY, leaf INTEGER, q_value REAL, is_query INTEGER NOT NULL
);
CREATE TABLE redirect (number INTEGER PRIMARY KEY, row INTEGER NOT NULL, url INTEGER NOT NULL);
CREATE TABLE item (
    row INTEGER NOT NULL, place INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (row, place)
);
CREATE TABLE request (row INTEGER PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE guest_path (
    row INTEGER PRIMARY KEY, reward REAL NOT NULL, length INTEGER NOT NULL,
    relevant INTEGER NOT NULL, distance REAL
);
CREATE TABLE outbox (
    shard INTEGER NOT NULL, number INTEGER NOT NULL, value BLOB NOT NULL,
    PRIMARY KEY (shard, number)
);
CREATE TABLE peer (
    shard INTEGER PRIMARY KEY, sent INTEGER NOT NULL, received INTEGER NOT NULL
);
"""


def write_version_7(source, target, *, version=7):
    """Write what a file of a run holds as version 7 would have written it."""
    target.parent.mkdir(exist_ok=True)
    with closing(open_to_read(source)) as run, closing(sqlite3.connect(target)) as older:
        older.executescript(TABLES)
        older.execute(f"PRAGMA application_id = {SCHEMA.application}")
        older.execute(f"PRAGMA user_version = {version}")
        for (table,) in older.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            rows = run.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - ours
            if table == "text":
                texts = {mark: value for _, mark, value in rows if value is not None}
                rows = [(row, texts[mark]) for row, mark, _ in rows]
            if table == "lease":
                rows = [(*row, 0) for row in rows]  # whether it is a query to a search engine
            for row in rows:
                places = ", ".join("?" * len(row))
                older.execute(f"INSERT INTO {table} VALUES ({places})", row)  # noqa: S608 - ours
        older.commit()
