"""Takes forgotten pages out of the file of a run, in one transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import Final

import numpy as np

from tres_scrapy.frontier.store import SAVED
from tres_scrapy.run.database import Database
from tres_scrapy.run.forgotten import FORGOTTEN, NOWHERE, Forgotten
from tres_scrapy.run.snapshot import DOORS, HOLDER, LINKS

LINK_MODEL: Final = "links"  # in `state`; without it, it is fitted again from all bookings
NAMING: Final = (LINKS,), (DOORS,), (HOLDER,)  # snapshots with names of sites or texts of links
# Tables with the rows of pages.
BY_ROW: Final = "score", "remark", "item", "request", "lease", "rights"
BLANK: Final = (
    f"UPDATE page SET url = 'http://{NOWHERE}/' || row, final_url = NULL, "  # noqa: S608 - constants
    f"domain = '{NOWHERE}', title = '', anchor = '', text = '', kind = '{FORGOTTEN}', "
    "relevant = 0, copy = 0, reward = 0, grade = 0, probability = NULL, link = NULL, mark = NULL "
    "WHERE row = ?"
)


def plan(database: Database, wanted: Forgotten) -> Forgotten:
    """Save what must never be fetched again; return all of it.

    A page is forgotten by each of its names: the URL chosen and the URL that answered.
    """
    found, known = set[str](), Forgotten.read(database)
    wanted = Forgotten(wanted.urls | known.urls, wanted.sites | known.sites)
    for names in database.execute("SELECT url, ifnull(final_url, url) FROM page"):
        if any(map(wanted.covers, names)):
            found.update(name for name in names if NOWHERE not in name)
    wanted = wanted.with_urls(url for url in found if not wanted.covers(url))
    with database.transaction() as cursor:
        wanted.save(cursor, FORGOTTEN)
    return wanted


def scrub(database: Database, forgotten: Forgotten) -> int:
    """Take the pages out of all tables; return how many were in them.

    Their rows stay, empty, so that the crawl can be resumed. Nothing of them is left in the free
    space of the file. A kill leaves all or nothing changed.
    """
    database.execute("PRAGMA secure_delete = ON")
    pages = database.execute("SELECT row, url, ifnull(final_url, url), kind FROM page").fetchall()
    hit = [(row, kind) for row, *urls, kind in pages if any(map(forgotten.covers, urls))]
    rows = [(row,) for row, _ in hit]
    with database.transaction() as cursor:
        cursor.executemany(BLANK, rows)
        cursor.executemany("UPDATE page SET anchor = '', link = NULL WHERE parent = ?", rows)
        for table in BY_ROW:
            cursor.executemany(f"DELETE FROM {table} WHERE row = ?", rows)  # noqa: S608
        for (row,) in rows:
            _forget_text(cursor, row)
        _forget_rivals(cursor, forgotten)
        _forget_links(cursor, forgotten, {row for (row,) in rows})
        cursor.executemany("DELETE FROM snapshot WHERE name = ?", NAMING)
        new = [row for row, kind in hit if kind != FORGOTTEN]
        if new:
            cursor.execute("DELETE FROM state WHERE name = ?", (LINK_MODEL,))
    database.execute("VACUUM")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return len(new)


def _forget_text(cursor: sqlite3.Cursor, row: int) -> None:
    """Delete a text; hand it to the next page that has the same."""
    found = cursor.execute("SELECT mark, value FROM text WHERE row = ?", (row,)).fetchone()
    if found is None:
        return
    mark, value = found
    cursor.execute("DELETE FROM text WHERE row = ?", (row,))
    if value is not None:
        heir = "SELECT min(row) FROM text WHERE mark = ?1"
        cursor.execute(f"UPDATE text SET value = ?2 WHERE row = ({heir})", (mark, value))  # noqa: S608


def _forget_rivals(cursor: sqlite3.Cursor, forgotten: Forgotten) -> None:
    """Take forgotten links out of the lists of links that were not chosen."""
    for step, value in cursor.execute("SELECT step, value FROM rivals").fetchall():
        rivals = json.loads(value)
        kept = [rival for rival in rivals if not forgotten.covers(rival[2])]
        if len(kept) < len(rivals):
            text = json.dumps(kept, ensure_ascii=False)
            cursor.execute("UPDATE rivals SET value = ? WHERE step = ?", (text, step))


def _forget_links(cursor: sqlite3.Cursor, forgotten: Forgotten, rows: set[int]) -> None:
    """Replace forgotten URLs of the frontier, and empty texts of links to and on their pages."""
    gone, before = set[int](), 0
    for number, samples, anchors, urls in cursor.execute(
        "SELECT number, samples, anchors, urls FROM batch ORDER BY number"
    ).fetchall():
        names = json.loads(urls)
        places = [place for place, url in enumerate(names) if forgotten.covers(url)]
        for place in places:
            names[place] = f"http://{NOWHERE}/{before + place}"
        gone.update(before + place for place in places)
        before += len(names)
        records, texts = np.frombuffer(samples, SAVED), json.loads(anchors)
        links = zip(records["url"].tolist(), records["parent"].tolist(), strict=True)
        texts = [
            "" if url in gone or parent in rows else text
            for text, (url, parent) in zip(texts, links, strict=True)
        ]
        changed = json.dumps(texts), json.dumps(names)
        if changed != (anchors, urls):
            cursor.execute(
                "UPDATE batch SET anchors = ?, urls = ? WHERE number = ?", (*changed, number)
            )
