"""Bodies of sites: a site, and all those that no known way from a seed reaches except through it.

A farm of any number of domains that link to each other is one body if one site led to it: in the
graph of sites, that site dominates it (Lengauer and Tarjan, 1979). Bodies contain others: the sites
of a crawl are a tree, in which the parent of a site is the last one on every way to it.
"""

from __future__ import annotations

from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.ledger import Said
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

FEW: Final = 5  # sites that the seeds' sites link to, or fewer, are as good as seeds
ROUNDS: Final = 50  # most; sites that more of them would free stay in their body

Sites = NDArray[np.int64]


class Bodies:
    """The bodies of sites [N], which go by the numbers of their domains.

    `finders` [N] are the sites through which each was found first, NO_PARENT for a seed and where
    that is not known. `links` [2, m] lead from one site to another, `degrees` [N] counts those of
    each, with links to sites that were left out. A seed has no body but itself, nor has a site that
    seeds link to, if they link to `few` or fewer.
    """

    def __init__(
        self,
        finders: Sites,
        links: Sites,
        seeds: Sites,
        *,
        few: int = FEW,
        degrees: Sites | None = None,
    ) -> None:
        self.links, self.seeds = links, seeds
        self._top = top = len(finders)  # stands for all starts, and for no site
        self.degrees = np.bincount(links[0], minlength=top) if degrees is None else degrees
        opened = _opened(top, links, seeds)
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
        return cls(*_graph(store))

    @classmethod
    def of_fetched(cls, store: SampleStore) -> tuple[Self, Said]:
        """Return the bodies of the sites that are seeds or have pages or links, and what they say.

        The others lead nowhere, so bodies are the same without them.
        """
        (finders, links, seeds), said = _graph(store), store.ledger.said
        is_kept = (said.pages > 0) | (said.stale > 0)
        for some in (seeds, links[0], said.domains, said.firsts):
            is_kept[some] = True
        place = np.cumsum(is_kept) - 1
        by = finders[is_kept]
        bodies = cls(
            np.where(by == NO_PARENT, NO_PARENT, place[by]),
            place[links[:, is_kept[links[1]]]],
            place[seeds],
            few=FEW if len(_opened(len(finders), links, seeds)) <= FEW else 0,
            degrees=np.bincount(links[0], minlength=len(finders))[is_kept],
        )
        some_said = said._replace(
            pages=said.pages[is_kept],
            relevant=said.relevant[is_kept],
            stale=said.stale[is_kept],
            domains=place[said.domains],
            firsts=place[said.firsts],
        )
        return bodies, some_said

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


def _opened(count: int, links: Sites, seeds: Sites) -> Sites:
    """Return the sites that seeds link to, of `count` sites."""
    is_seed = np.zeros(count, dtype=np.bool_)
    is_seed[seeds] = True
    return np.unique(links[1, is_seed[links[0]]])


def _graph(store: SampleStore) -> tuple[Sites, Sites, Sites]:
    """Return the finders [N] of the sites of a store, the links between sites [2, m], the seeds."""
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
    return finders, ends, np.unique(domains[found_by == NO_PARENT]).astype(np.int64)
