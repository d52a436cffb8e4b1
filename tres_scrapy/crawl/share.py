"""How the pages of a crawl are shared among sites and bodies of sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.body import SiteLinks, Sites
from tres_scrapy.frontier.store import NO_PARENT

LAST: Final = 500  # pages that are looked at,
LEAST: Final = 200  # and how many there must be
LARGE: Final = 1 / 3  # of them: what is said of a site or body that gave more
FEW: Final = 5  # sites that the seeds' sites link to, or fewer, are as good as seeds
NEARLY: Final = 0.9  # of the pages of a body: a smaller one inside that has so many names it
STEPS: Final = 20  # from door to door on the way to the innermost: each looks at all sites
MANY: Final = (
    10,
    0.1,
)  # sites that link to an honest hub: at least so many, and of the others a share
SEED, SCOPE, CAP, HUB = "seed", "allowed_domains", "max_per_domain", "hub"  # why it is no surprise


class Holder(NamedTuple):
    """The site or body that gave most of the last pages, more than LARGE of them."""

    site: str  # the door of the body
    sites: int  # of the body, fetched; 1 if nearly all the pages are of the door itself
    pages: int
    of: int
    linkers: int  # sites that link to the door
    reason: str = ""  # SEED, SCOPE, CAP or HUB if it is no surprise


class Shares:
    """The sites of a crawl now, and the bodies that they belong to."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl, store = crawl, crawl.store
        self._fetched = ~store.ledger.never_visited(np.arange(len(store.ledger), dtype=np.int32))
        links = store.ledger.links.values()
        sources, targets = links >> 32, links & 0xFFFFFFFF
        self._starts = np.unique(store["domain"][store["parent"] == NO_PARENT]).astype(np.int64)
        opened = np.unique(targets[np.isin(sources, self._starts)])
        if len(opened) <= FEW:
            self._starts = np.union1d(self._starts, opened)
        known = self._fetched[targets]
        self._links = SiteLinks(sources[known], targets[known], len(store.ledger))
        self._doors = self._links.doors(self._starts)
        self._body = np.zeros(0, dtype=np.int64)  # the sites of the holder
        self.holder = self._find_holder()

    def doors(self) -> dict[str, tuple[str, bool]]:
        """Return the door of each fetched site, and whether two independent ways lead to the site.

        The seeds' sites, and those that they link to, count as such. A site that belongs to no body
        is its own door. Without the links between sites, which are an option, there is nothing.
        """
        if not self._crawl.store.ledger.inlinks:
            return {}
        names, sites = self._crawl.store.ledger.names, np.flatnonzero(self._fetched)
        doors = self._doors.copy()
        doors[self._body] = self._body[:1]  # the first site of a body is its door
        linked = (self._doors == np.arange(len(doors)))[sites].tolist()
        found = zip(sites.tolist(), doors[sites].tolist(), linked, strict=True)
        return {names[site]: (names[door], is_linked) for site, door, is_linked in found}

    def _find_holder(self) -> Holder | None:
        """Return who gave more than LARGE of the last pages, None if no site or body did."""
        store = self._crawl.store
        pages = store["domain"].take(store.last_pages(LAST)).astype(np.int64)
        if len(pages) < LEAST:
            return None
        door, count = _most(self._doors[pages])
        if count <= LARGE * len(pages):
            return None
        doors, door = self._innermost(pages, door, count)
        inside, linkers = (doors == door) & self._fetched, int(self._links.counts[door])
        if alone := np.count_nonzero(pages == door) >= NEARLY * np.count_nonzero(inside[pages]):
            inside = np.arange(len(inside)) == door
        self._body = np.flatnonzero(inside)
        held, reason = int(inside[pages].sum()), self._reason(door, alone=bool(alone))
        name = store.ledger.names[door]
        return Holder(name, len(self._body), held, len(pages), linkers, reason)

    def _innermost(self, pages: Sites, door: int, count: int) -> tuple[Sites, int]:
        """Return the doors of all sites, and the last door on the way to nearly all the pages.

        A farm is found through an honest site, which gave a few of the last pages [n].
        """
        doors, starts = self._doors, self._starts
        for _ in range(STEPS):
            if door in starts:
                break
            starts = np.append(starts, door)
            inner = self._links.doors(starts)
            deeper, held = _most(inner[pages])
            if deeper in starts or held < NEARLY * count:
                break
            doors, door = inner, deeper
        return doors, door

    def _reason(self, door: int, *, alone: bool) -> str:
        scope = self._crawl.store.admission.scope
        if scope is not None and scope.options.allowed_domains:
            return SCOPE
        if door in self._starts:
            return SEED
        if alone and self._crawl.store.ledger.cap is not None:
            return CAP
        least, share = MANY
        others = np.count_nonzero(self._fetched) - len(self._body)
        return HUB if self._links.counts[door] >= max(least, share * others) else ""


def _most(doors: Sites) -> tuple[int, int]:
    """Return the most frequent of sites [n], and how often it is there."""
    sites, counts = np.unique(doors, return_counts=True)
    most = int(counts.argmax())
    return int(sites[most]), int(counts[most])


def members(doors: Mapping[str, tuple[str, bool]], site: str) -> frozenset[str]:
    """Return a site, and the sites of its body if it is a door; `doors` is of `Shares.doors`."""
    return frozenset({site} | {name for name, (door, _) in doors.items() if door == site})
