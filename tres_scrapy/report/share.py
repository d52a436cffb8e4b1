"""What the report says about the sites and bodies of sites that the pages came from."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from tres_scrapy.crawl.share import CAP, HUB, SCOPE, SEED, SMALL, Holder
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import reading
from tres_scrapy.run.snapshot import DOORS, HOLDER
from tres_scrapy.url.message import counted, plural

ALL: Final = -1
REASONS: Final = {
    SEED: "the crawl began there",
    SCOPE: "allowed_domains allows few sites",
    CAP: "max_per_domain allows as many",
    HUB: "many other sites link to it",
}
DOUBT: Final = "The judge likes these pages, but they say hardly anything new. "


class Holding(NamedTuple):
    """The pages of a site, or of a body: its door, and the sites found only through that."""

    site: str
    sites: int
    pages: int
    relevant: int


def shares(record: Record, count: int) -> list[Holding]:
    """Return the `count` sites or bodies that gave most pages; one of one site is a site."""
    doors, sites = doors_of(record), Counter[str]()
    pages, relevant = Counter[str](), Counter[str]()
    for site, fetched, good in record.domains(ALL):
        door, _ = doors.get(site, (site, True))
        sites[door] += 1
        pages[door] += fetched
        relevant[door] += good
    most = pages.most_common(count)
    return [Holding(door, sites[door], number, relevant[door]) for door, number in most]


class Totals(NamedTuple):
    """Pages that were fetched and are left, those of them in the output, and domains of these."""

    pages: int
    relevant: int
    domains: int


def totals(record: Record) -> Totals:
    """Return the figures of what a run gives now."""
    found = record.domains(ALL)
    return Totals(
        sum(pages for _, pages, _ in found),
        sum(good for _, _, good in found),
        sum(good > 0 for _, _, good in found),
    )


def independent(record: Record) -> int | None:
    """Return how many relevant pages are on sites to which two independent ways are known.

    So are those that a site of a seed links to. None if the crawl did not note links of sites.
    """
    doors, found = doors_of(record), record.domains(ALL)
    linked = sum(good for site, _, good in found if doors.get(site, (site, False))[1])
    return linked if doors else None


def doors_of(record: Record) -> dict[str, tuple[str, bool]]:
    """Return what `Shares.doors` found, {} if the crawl did not note links of sites."""
    found = record.snapshot(DOORS) or {}
    with reading(record.path):
        return {str(site): (str(door), bool(linked)) for site, (door, linked) in found.items()}


def holder_of(record: Record) -> Holder | None:
    """Return who gave more than a third of the last pages; None if no site or body did."""
    found = record.snapshot(HOLDER)
    with reading(record.path):
        return None if found is None else Holder(*found)


def sentence(holder: Holder) -> str:
    """Return who gave most of the last pages, and whether that was to be expected."""
    share = f"{holder.pages / holder.of:.0%} of the last {holder.of} pages"
    others = holder.sites - 1
    if holder.doubt == SMALL:
        found = f"{holder.sites:,} small {plural(holder.sites, 'site')}, of which {holder.site} is "
        said = f"{found}the largest, gave {share}"
    else:
        found = f" and {counted(others, 'site')} found only through it" if others else ""
        said = f"{holder.site}{found} gave {share}"
    if holder.reason:
        return f"{said}: {REASONS[holder.reason]}."
    number = f"{holder.linkers:,}" if holder.linkers else "no"
    links = "links" if holder.linkers == 1 else "link"
    said += f"; {number} other {plural(holder.linkers, 'site')} {links} to {holder.site}. "
    doubt = DOUBT if holder.doubt else ""
    take_out = f"If you do not trust it, take its pages out: tres distrust {holder.site} RUN"
    return f"{said}{doubt}{take_out}"
