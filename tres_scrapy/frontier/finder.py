"""Failures of links by their finder: the site whose page has the link.

A page may name any URL of another site: ports that nothing listens on, names that do not exist,
paths that are refused. If these failures counted fully, it could end the crawl of that site.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows, Table

PART: Final = 10  # links of another site count for at most one part of what ends a target


class Finders:
    """Counts failures in a row of links to targets, domains or hosts, by the finder of each link.

    The failures that another site finds end its own links to a target after `most` of them, and
    count for the target itself only up to a tenth of `most`. All go by number.
    """

    def __init__(self, most: int) -> None:
        self._most, self._share = most, max(1, most // PART)
        self._counts: dict[int, Counter[int]] = {}  # of other finders, by target
        self.targets = set[int]()  # to which the links of some finder have ended
        self._ended = np.zeros(0, dtype=np.int64)  # finder << 32 | target

    def note(self, target: int, finder: int, *, own: bool) -> bool:
        """Note a failure of a link; return whether it counts for the target itself.

        It does if the link is the target's `own`.
        """
        if own:
            return True
        counts = self._counts.setdefault(target, Counter())
        counts[finder] += 1
        if counts[finder] == self._most:
            self.end(target, finder)
        return counts[finder] <= self._share

    def end(self, target: int, finder: int) -> None:
        """End the links of a finder to a target."""
        self.targets.add(target)
        self._ended = np.union1d(self._ended, [(finder << 32) | target])

    def forget(self, target: int) -> None:
        """Note that the failures in a row of a target are over; links that have ended stay so."""
        self._counts.pop(target, None)

    def ended(
        self, finders: NDArray[np.integer], targets: NDArray[np.integer]
    ) -> NDArray[np.bool_]:
        """Return which links [n] have ended, given the finder and the target of each."""
        if not len(self._ended):
            return np.zeros(len(targets), dtype=np.bool_)
        return np.isin((finders.astype(np.int64) << 32) | targets, self._ended)


def finders_of(samples: Table, rows: Rows) -> NDArray[np.int32]:
    """Return the domains of the pages that have the links of `rows`; a seed is its domain's own."""
    parents, domains = samples["parent"].take(rows), samples["domain"]
    return np.where(parents < 0, domains.take(rows), domains.take(parents))
