"""How fresh a crawler's copies were, from the changing web's log and history."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.lab.webs.changing import ChangingWeb


def deliveries(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Return when each page was delivered with a body, in days, from the rows of a log."""
    times: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["status"] == 200 and "version" in row:
            times[str(row["url"])].append(float(row["day"]))
    return times


def freshness(
    web: ChangingWeb, delivered: Mapping[str, list[float]], start: float, end: float
) -> NDArray[np.float64]:
    """Return the share of the time from `start` to `end` that each page's copy was fresh, [n].

    All copies were made at the start. A copy is fresh until the page changes. Time when the page
    does not exist is left out.
    """
    shares = np.ones(len(web.shelf.urls))
    for page, url in enumerate(web.shelf.urls):
        changes = web.changes.times(page, end)
        moments = [start, *(day for day in delivered.get(url, []) if start < day < end), end]
        there = fresh = 0.0
        for begin, until in itertools.pairwise(moments):
            place = bisect_right(changes, begin)
            stale = min(until, changes[place]) if place < len(changes) else until
            fresh += web.changes.presence(page, begin, stale)
            there += web.changes.presence(page, begin, until)
        shares[page] = fresh / there if there > 0 else np.nan
    return shares
