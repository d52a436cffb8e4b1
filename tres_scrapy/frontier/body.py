"""Bodies of sites: a site, and all those that no known way from a seed reaches except through it.

A farm of any number of domains that link to each other is one body if one site led to it: in the
graph of sites, that site dominates it (Lengauer and Tarjan, 1979). Bodies contain others: the sites
of a crawl are a tree, in which the parent of a site is the last one on every way to it.
"""

from __future__ import annotations

from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.store import NO_PARENT, SampleStore

FEW: Final = 5  # sites that the seeds' sites link to, or fewer, are as good as seeds
ROUNDS: Final = 50  # most; sites that more of them would free stay in their body

Sites = NDArray[np.int64]


class Bodies:
    """The bodies of sites [N], which go by the numbers of their domains.

    `finders` [N] are the sites through which each was found first, NO_PARENT for a seed and where
    that is not known. `links` [2, m] lead from one site to another. A seed has no body but itself,
    nor has a site that seeds link to, if they link to `few` or fewer.
    """

    def __init__(self, finders: Sites, links: Sites, seeds: Sites, *, few: int = FEW) -> None:
        self.links, self.seeds = links, seeds
        self._top = top = len(finders)  # stands for all starts, and for no site
        opened = np.unique(links[1, _marked(top, seeds)[links[0]]])
        self.starts = starts = np.union1d(seeds, opened) if len(opened) <= few else seeds
        self.linkers = np.bincount(links[1], minlength=top)  # sites that link to each
        places = np.arange(top + 1)
        places[starts] = top
        parents = np.append(np.where(finders == NO_PARENT, top, places[finders]), top)
        parents[starts] = top
        sources, targets = places[links[0]], links[1]
        self._climb(parents)
        for _ in range(ROUNDS):
            inside = parents[targets] != top
            sources, targets = sources[inside], targets[inside]
            common = self.common(parents[targets], sources)
            freed = np.flatnonzero(common != parents[targets])
            if not len(freed):
                break
            # Of several links to a site, the one that frees it most is the last.
            freed = freed[np.argsort(-self.depths[common[freed]], kind="stable")]
            parents = parents.copy()
            parents[targets[freed]] = common[freed]
            self._climb(parents)

    @classmethod
    def of(cls, store: SampleStore) -> Self:
        """Return the bodies of the sites of a store; without counts of links each is alone.

        So is a site that was found by a redirect: many sites lead to others that way.
        """
        domains, found_by = store["domain"], store["parent"]
        first_of = np.full(len(store.ledger), -1, dtype=np.int64)
        first_of[domains[::-1]] = np.arange(len(domains) - 1, -1, -1)  # the last one assigned stays
        numbers = np.flatnonzero(first_of >= 0)
        firsts = first_of[numbers]
        by = domains[found_by[firsts]].astype(np.int64)
        is_linked = (found_by[firsts] != NO_PARENT) & store.ledger.links.has((by << 32) + numbers)
        finders = np.full(len(store.ledger), NO_PARENT, dtype=np.int64)
        finders[numbers[is_linked]] = by[is_linked]
        links = store.ledger.links.values()
        ends = np.stack([links >> 32, links & 0xFFFFFFFF])
        return cls(finders, ends, np.unique(domains[found_by == NO_PARENT]).astype(np.int64))

    @property
    def doors(self) -> Sites:
        """The outermost body [N] of each site: the site itself, if two ways to it share no site."""
        doors = np.arange(self._top)
        for up in reversed(self._ups):
            doors = np.where(up[doors] == self._top, doors, up[doors])
        return doors

    def members(self, site: int) -> NDArray[np.bool_]:
        """Return which sites [N] are in the body of a site."""
        return self.inherited(np.arange(self._top) == site)

    def sums(self, numbers: NDArray) -> NDArray:  # type: ignore[type-arg]
        """Return the sums of numbers [N] over the body of each site."""
        sums = np.append(numbers, 0)
        for up in self._ups:
            sums = sums + np.bincount(up, sums, len(up)).astype(sums.dtype)
        return sums[:-1]

    def inherited(self, values: NDArray) -> NDArray:  # type: ignore[type-arg]
        """Return the highest of values [N], 0 or more, of each site and the bodies it is in."""
        highest = np.append(values, values.dtype.type(0))
        for up in self._ups:
            highest = np.maximum(highest, highest[up])
        return highest[:-1]

    def _climb(self, parents: Sites) -> None:
        """Note where 1, 2, 4, ... steps up from each site end, and how deep it is; 1 outermost."""
        self._ups, self.depths = [parents], np.ones(self._top + 1, dtype=np.int64)
        self.depths[-1] = 0
        while ((up := self._ups[-1]) != self._top).any():
            self.depths = self.depths + self.depths[up]
            self._ups.append(up[up])

    def common(self, sites: Sites, others: Sites) -> Sites:
        """Return the innermost body that contains sites [m] and others [m], N if there is none."""
        is_deeper = self.depths[sites] >= self.depths[others]
        deep, high = np.where(is_deeper, [sites, others], [others, sites])
        steps = self.depths[deep] - self.depths[high]
        for bit, up in enumerate(self._ups):
            deep = np.where(steps >> bit & 1, up[deep], deep)
        for up in reversed(self._ups):
            apart = up[deep] != up[high]
            deep, high = np.where(apart, [up[deep], up[high]], [deep, high])
        common: Sites = np.where(deep == high, deep, self._ups[0][deep])
        return common


def _marked(count: int, sites: Sites) -> NDArray[np.bool_]:
    """Return which of the first numbers are those of sites."""
    marked = np.zeros(count, dtype=np.bool_)
    marked[sites] = True
    return marked
