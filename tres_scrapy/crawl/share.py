"""How the pages of a crawl are shared among sites and bodies of sites.

Trust and judge disagree about a body that gives many of the last pages if the judge finds most of
its pages relevant, but it is stale and its trust does not account for so many (`agent/trust.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.agent.trust import excess_of
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.body import Bodies, Sites

LAST: Final = 500  # pages that are looked at,
LEAST: Final = 200  # and how many there must be
LARGE: Final = 1 / 3  # of them: what is said of a site or body that gave more
NEARLY: Final = 0.9  # of the pages of a body: a smaller one inside that has so many names it
MANY: Final = 10, 0.1  # sites that link to an honest hub: least, and share of the others
DOUBTFUL: Final = 0.1  # of them: what is said of a body on which trust and judge disagree
SEED, SCOPE, CAP, HUB = "seed", "allowed_domains", "max_per_domain", "hub"  # why it is no surprise
BODY, SMALL = "body", "small"  # on what trust and judge disagree: one body, or small sites together


class Holder(NamedTuple):
    """The site or body that gave most of the last pages, more than LARGE of them, or doubtful."""

    site: str  # the door of the body
    sites: int  # of the body, fetched; 1 if nearly all the pages are of the door itself
    pages: int
    of: int
    linkers: int  # sites that link to the door
    reason: str = ""  # SEED, SCOPE, CAP or HUB if it is no surprise
    doubt: str = ""  # BODY or SMALL; of small ones, `site` is the largest and `sites` all


class Shares:
    """The sites of a crawl now, and the bodies that they belong to."""

    def __init__(self, crawl: Crawl) -> None:
        self._crawl, store = crawl, crawl.store
        self._fetched = ~store.ledger.never_visited(np.arange(len(store.ledger), dtype=np.int32))
        self._bodies = Bodies.of(store)
        self._door = 0  # of the holder,
        self._inside = np.zeros(len(store.ledger), dtype=np.bool_)  # and its sites
        self.holder = self._find_holder()

    def doors(self) -> dict[str, tuple[str, bool]]:
        """Return the door of each fetched site, and whether two independent ways lead to the site.

        The seeds' sites, and those that they link to, count as such. A site that belongs to no body
        is its own door. Without the links between sites, which are an option, there is nothing.
        """
        if not self._crawl.store.ledger.inlinks:
            return {}
        names, sites = self._crawl.store.ledger.names, np.flatnonzero(self._fetched).tolist()
        outermost = self._bodies.doors.tolist()
        doors = np.where(self._inside, self._door, outermost).tolist()
        return {names[site]: (names[doors[site]], outermost[site] == site) for site in sites}

    def _find_holder(self) -> Holder | None:
        """Return on whom of the last pages trust and judge disagree, or who gave LARGE of them."""
        store, bodies, said = self._crawl.store, self._bodies, self._crawl.store.ledger.said
        last = np.bincount(store["domain"][store.last_pages(LAST)], minlength=len(said.pages))
        if (of := int(last.sum())) < LEAST:
            return None
        held, excess = bodies.sums(last), excess_of(said, bodies, last)
        scope, has_cap = store.admission.scope, store.ledger.cap is not None
        is_free = store.ledger.inlinks and not (scope and scope.options.allowed_domains)
        is_liked = is_free & (2 * bodies.sums(said.relevant) > bodies.sums(said.pages))
        is_doubtful = is_liked & (excess.of_bodies > 0) & (held > DOUBTFUL * of)
        is_doubtful &= ~(has_cap & (last >= NEARLY * held))
        if is_doubtful.any():
            return self._named(last, held * is_doubtful)._replace(reason="", doubt=BODY)
        if held.max() > LARGE * of:
            return self._named(last, held)
        is_small = is_liked & (excess.stale == 1) & self._fetched
        if excess.together and (pages := int(last[is_small].sum())) > DOUBTFUL * LAST:
            largest, sites = int(np.argmax(last * is_small)), int(np.count_nonzero(is_small))
            linkers = int(bodies.linkers[largest])
            return Holder(store.ledger.names[largest], sites, pages, of, linkers, doubt=SMALL)
        return None

    def _named(self, last: Sites, held: Sites) -> Holder:
        """Return which body gave most of the last pages [N], given what bodies [N] `held` of them.

        A farm is found through an honest site, which gave a few of them: the innermost body with
        nearly all of them is named, and its door alone if that gave nearly all.
        """
        bodies = self._bodies
        door = int(np.argmax(bodies.depths[:-1] * (held >= NEARLY * held.max())))
        inside = bodies.members(door) & self._fetched
        if alone := bool(last[door] >= NEARLY * held[door]):
            inside = np.arange(len(inside)) == door
        self._door, self._inside = door, inside
        counts = int(np.count_nonzero(inside)), int(last[inside].sum()), int(last.sum())
        name, linkers = self._crawl.store.ledger.names[door], int(bodies.linkers[door])
        return Holder(name, *counts, linkers, self._reason(door, alone=alone))

    def _reason(self, door: int, *, alone: bool) -> str:
        scope = self._crawl.store.admission.scope
        if scope is not None and scope.options.allowed_domains:
            return SCOPE
        if door in self._bodies.starts:
            return SEED
        if alone and self._crawl.store.ledger.cap is not None:
            return CAP
        least, share = MANY
        others = np.count_nonzero(self._fetched & ~self._inside)
        return HUB if self._bodies.linkers[door] >= max(least, share * others) else ""


def members(doors: Mapping[str, tuple[str, bool]], site: str) -> frozenset[str]:
    """Return a site, and the sites of its body if it is a door; `doors` is of `Shares.doors`."""
    return frozenset({site} | {name for name, (door, _) in doors.items() if door == site})
