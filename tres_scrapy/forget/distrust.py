"""Takes sites that are not trusted out of what a run gives, and keeps their pages in its file.

A kill at any moment leaves a state from which the same call completes the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tres_scrapy.crawl.crawl import PAGE
from tres_scrapy.crawl.share import members
from tres_scrapy.forget.forgetting import report_again, stopped, take_out, wanted_of
from tres_scrapy.forget.scrub import LINK_MODEL
from tres_scrapy.run.database import Database
from tres_scrapy.run.forgotten import DISTRUSTED, FORGOTTEN, Forgotten
from tres_scrapy.run.snapshot import DOORS, HOLDER, LINKS
from tres_scrapy.url.message import TresError, counted

MARK = (
    f"UPDATE page SET kind = '{DISTRUSTED}', relevant = 0, copy = 0, reward = 0, "  # noqa: S608
    "grade = 0, link = NULL, mark = NULL WHERE row = ?"
)


def distrust(path: Path, text: str, say: Callable[[str], None]) -> None:
    """Distrust a site and those found only through it; `say` gets a line for each thing done.

    Raise TresError, and change nothing, if the crawl runs or has fetched nothing of the site.
    """
    (site,) = wanted_of(text).sites or [text]
    with stopped(path) as database:
        sites = _body(database, site)
        known = Forgotten.read(database, DISTRUSTED)
        wanted = known._replace(sites=known.sites | sites)
        with database.transaction() as cursor:
            wanted.save(cursor, DISTRUSTED)
        for line in take_out(path, database, wanted):
            say(line)
        pages = _mark(database, wanted)
        others = f" and {len(sites) - 1:,} sites found only through it" if len(sites) > 1 else ""
        say(f"{path}: {counted(pages, 'page')} marked, of {site}{others}")
    report_again(path, say)


def _body(database: Database, site: str) -> frozenset[str]:
    """Return a site and the sites of its body; raise TresError if it is not one of the run's."""
    found = database.execute("SELECT 1 FROM page WHERE domain = ? LIMIT 1", (site,)).fetchone()
    if found is None:
        raise TresError(f"{site!r} must be a registrable domain of which a page was fetched")
    doors = database.execute("SELECT value FROM snapshot WHERE name = ?", (DOORS,)).fetchone()
    return members(json.loads(doors[0]), site) if doors else frozenset({site})


def _mark(database: Database, distrusted: Forgotten) -> int:
    """Mark the pages in one transaction; return how many of kind `page` were marked."""
    pages = database.execute("SELECT row, url, ifnull(final_url, url), kind FROM page").fetchall()
    hit = [
        (row, kind)
        for row, *urls, kind in pages
        if kind not in {FORGOTTEN, DISTRUSTED} and any(map(distrusted.covers, urls))
    ]
    rows = [(row,) for row, _ in hit]
    with database.transaction() as cursor:
        cursor.executemany(MARK, rows)
        cursor.executemany("DELETE FROM item WHERE row = ?", rows)
        cursor.execute("DELETE FROM snapshot WHERE name IN (?, ?)", (LINKS, HOLDER))
        if hit:
            cursor.execute("DELETE FROM state WHERE name = ?", (LINK_MODEL,))
    return sum(kind == PAGE for _, kind in hit)
