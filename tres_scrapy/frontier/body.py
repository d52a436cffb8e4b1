"""Bodies of sites: a door, and all the sites that no known way reaches except through it.

A farm of any number of domains that link to each other is one body if one site led to it: in the
graph of sites, its door dominates it (Lengauer and Tarjan, 1979). Sites go by the numbers of their
domains, which rise in the order in which links to them are found.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LINKERS: Final = 8  # sites, the first of those that link to a site, that are looked at
ROUNDS: Final = 50  # most; sites that more of them would free stay in their body

Sites = NDArray[np.int64]


class SiteLinks:
    """The sites that link to each of `size` sites, from `sources` to `targets` [n], each once."""

    def __init__(self, sources: Sites, targets: Sites, size: int) -> None:
        order = np.lexsort((sources, targets))
        sources, targets = sources[order], targets[order]
        self.counts = np.bincount(targets, minlength=size)  # of the sites that link to each
        place = np.arange(len(targets)) - np.repeat(np.cumsum(self.counts), self.counts)
        place += np.repeat(self.counts, self.counts)
        kept = place < LINKERS
        linkers = np.full((size, LINKERS), -1)
        linkers[targets[kept], place[kept]] = sources[kept]
        first = np.where(self.counts > 0, linkers[:, 0], np.arange(size))
        self._linkers = np.where(linkers < 0, first[:, None], linkers)  # [size, LINKERS]

    def doors(self, starts: Sites) -> Sites:
        """Return the door of each site [size]; that of a start and of a site alone is itself.

        A site is its own door if a start or sites of two bodies link to it: then there are two ways
        to it that share no site.
        """
        itself = np.arange(len(self._linkers))
        is_open = self._linkers[:, 0] >= itself  # no link led to it: a start, or a redirect
        is_open |= np.isin(self._linkers, starts).any(axis=1)
        is_open[starts] = True
        for _ in range(ROUNDS):
            doors = np.where(is_open, itself, self._linkers[:, 0])
            while (doors[doors] != doors).any():
                doors = doors[doors]
            found = doors[self._linkers]
            freed = ~is_open & (found != found[:, :1]).any(axis=1)
            if not freed.any():
                break
            is_open |= freed
        return doors
