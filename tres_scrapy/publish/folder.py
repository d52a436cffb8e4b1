"""Writes the folder: index, pages of sites and a search page, which load nothing."""

from __future__ import annotations

import shutil
from importlib.resources import files
from math import sqrt
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from tres_scrapy.publish.collection import Collection, Site, read_collection, shortened
from tres_scrapy.publish.site_map import SIDE, draw
from tres_scrapy.report.chart import script_hash, script_json, templates_in
from tres_scrapy.report.crawl_report import web_link
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import PART
from tres_scrapy.url.message import TresError, plural

ON_A_PAGE: Final = 200  # pages of a site
BEST: Final = 12  # pages on the index: the best of as many sites
INDEX_LEAD: Final = 120  # characters of a lead that are searched
MARK: Final = "tres-publish.txt"  # in a folder that tres publish has written
MARKED: Final = "Written by tres publish, which replaces this folder.\n"


def publish(record: Record, folder: Path) -> int:
    """Write the folder of a crawl and return the number of its pages.

    It replaces an older folder of its own only when it is complete. Raise TresError if something
    else is there.
    """
    if folder.is_symlink() or (folder.exists() and not _is_own(folder)):
        raise TresError(f"{folder} exists and is not of tres publish: give another folder")
    collection = read_collection(record)
    part = folder.with_name(f"{folder.name}{PART}")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for name, text in _pages(collection):
        (part / name).write_bytes(text.encode(errors="replace"))  # a title may hold a surrogate
    (part / MARK).write_text(MARKED, encoding="utf-8")
    if folder.exists():
        shutil.rmtree(folder)
    part.rename(folder)
    return len(collection.pages)


def _is_own(folder: Path) -> bool:
    return folder.is_dir() and ((folder / MARK).is_file() or not any(folder.iterdir()))


def _pages(collection: Collection) -> list[tuple[str, str]]:
    """Return the names and texts of the files."""
    environment = templates_in("publish")
    script = files(__package__).joinpath("search.js").read_text(encoding="utf-8")
    common: dict[str, Any] = {
        "collection": collection,
        "file_of": file_of,
        "web_link": web_link,
        "share": percent_with_interval,
        "plural": plural,
    }

    def render(template: str, **values: Any) -> str:
        return environment.get_template(f"{template}.html.jinja").render(**common, **values)

    best = [site.pages[0] for site in collection.sites[:BEST]]
    found = [("index.html", render("index", best=best, map=draw(collection), side=SIDE))]
    for site in collection.sites:
        for part in range(parts_of(site)):
            shown = site.pages[part * ON_A_PAGE : (part + 1) * ON_A_PAGE]
            text = render("site", site=site, pages=shown, part=part, parts=parts_of(site))
            found.append((file_of(site, part), text))
    found.append(
        (
            "search.html",
            render(
                "search",
                index=_index(collection),
                script=Markup(script),  # noqa: S704 - our own
                hash=script_hash(script),
            ),
        )
    )
    return found


def file_of(site: Site, part: int = 0) -> str:
    """Return the name of the file with a part of the pages of a site."""
    return f"site-{site.number}.html" if part == 0 else f"site-{site.number}-{part + 1}.html"


def parts_of(site: Site) -> int:
    """Return into how many files the pages of a site are divided."""
    return -(-len(site.pages) // ON_A_PAGE)


def _index(collection: Collection) -> Markup:
    """Return what is searched, as JSON."""
    found = [
        [page.title, web_link(page.url), page.site, shortened(page.lead, INDEX_LEAD)]
        for page in collection.pages
    ]
    return script_json(found)


Z: Final = 1.96  # 95 %
PERCENT: Final = "\N{NO-BREAK SPACE}%"


def wilson(hits: int, trials: int) -> tuple[float, float]:
    """Return the 95 % interval of Wilson (1927) of a share, (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    share, square = hits / trials, Z * Z / trials
    middle = (share + square / 2) / (1 + square)
    reach = Z * sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def percent_with_interval(hits: int, trials: int) -> str:
    """Return a share as `41.0 % (36.2 to 45.9 %)`."""
    low, high = wilson(hits, trials)
    share = hits / max(1, trials)
    return f"{100 * share:.1f}{PERCENT} ({100 * low:.1f} to {100 * high:.1f}{PERCENT})"
