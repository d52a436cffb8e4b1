"""Which sites may not be sent a request now: out of their hours, or after their last of the day.

A site is a registrable domain. Times are in seconds since 1970; a day is one of UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.visit import DAY, NO_LIMIT, Hours, VisitOptions
from tres_scrapy.frontier.column import Table
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.url.canonical import registrable_domain

REQUESTS = "requests of "  # before a site, in `meta` of the file of a run: the day and its requests
_SITE = np.dtype([("rule", "i4"), ("requests", "i4")])


class Visit(NamedTuple):
    """A request to a site: the day in UTC, counted since 1970, and how many it has had then."""

    site: str
    day: int
    requests: int


class Visits:
    """Counts the requests of the day by site, and says which sites are closed.

    `opens_at` is when the first site opens, in seconds since 1970, while all links wait for that.
    """

    def __init__(self, ledger: DomainLedger, options: VisitOptions) -> None:
        self.is_limited = options.are_limited
        self.opens_at: float | None = None
        self._ledger = ledger
        # by rule, of which the first is that of all sites without one of their own
        self._hours = [options.hours or Hours()]
        most = [options.per_day or NO_LIMIT]
        self._own: dict[str, int] = {}  # rules by domain
        for rule in options.sites:
            self._own[registrable_domain(rule.site)] = len(most)
            self._hours.append(rule.hours or self._hours[0])
            most.append(rule.per_day or most[0])
        self._most = np.array(most, dtype=np.int32)
        self._sites = Table(_SITE)  # by domain
        self._day = 0

    def restore(self, visits: Iterable[Visit]) -> None:
        """Continue with the counts of an earlier run, of which those of its last day matter."""
        for visit in sorted(visits, key=lambda each: each.day):
            number = self._ledger.id_of(visit.site)
            self._look(float(visit.day * DAY))
            self._sites["requests"][number] = min(visit.requests, NO_LIMIT)

    def note(self, host: str, now: float) -> Visit | None:
        """Count a request; return None if its site has no limit a day."""
        self.opens_at = None
        number = self._ledger.id_of_host(host)
        self._look(now)
        self._sites["requests"][number] += 1
        if self._most[self._sites["rule"][number]] == NO_LIMIT:
            return None
        requests = int(self._sites["requests"][number])
        return Visit(self._ledger.names[number], self._day, requests)

    def closed(self, now: float) -> NDArray[np.bool_] | None:
        """Return which domains [n] are closed, and in the end whether a new one would be.

        Fetches under way count as requests: those not sent yet will be. None if no site ever is.
        """
        return self._closed(now, running=True) if self.is_limited else None

    def _closed(self, now: float, *, running: bool) -> NDArray[np.bool_]:
        self._look(now)
        away = np.array([hours.begin_in(now) > 0 for hours in self._hours])
        closed = away[self._sites["rule"]] | (self._left(running=running) <= 0)
        return np.append(closed, away[0])

    def is_closed(self, host: str, now: float) -> bool:
        """Return whether a request to a host must not be sent now."""
        number = self._ledger.id_of_host(host) if self.is_limited else 0
        return self.is_limited and bool(self._closed(now, running=False)[number])

    def next_time(self, now: float) -> float | None:
        """Return when the next closed site with waiting links opens; None if none waits."""
        if not self.is_limited:
            return None
        self._look(now)
        used, rules = self._left(running=False) <= 0, self._sites["rule"]
        times = set()
        for rule, hours in enumerate(self._hours):
            for start, is_used in ((now, False), ((self._day + 1) * float(DAY), True)):
                opens = start + hours.begin_in(start)
                some = np.flatnonzero((rules == rule) & (used == is_used))
                if opens > now and self._ledger.pending(some):
                    times.add(opens)
        return min(times, default=None)

    def _left(self, *, running: bool) -> NDArray[np.int32]:
        """Return how many requests of the day each domain has left [n]."""
        left = self._most[self._sites["rule"]] - self._sites["requests"]
        if running:
            left -= self._ledger.under_way(np.arange(len(left), dtype=np.int32))
        return np.asarray(left, dtype=np.int32)

    def _look(self, now: float) -> None:
        """Learn the rules of new domains; a new day has no requests yet."""
        first, names = len(self._sites), self._ledger.names
        self._sites.grow(len(names))
        if self._own:
            self._sites["rule"][first:] = [self._own.get(name, 0) for name in names[first:]]
        if (day := int(now // DAY)) != self._day:
            self._day = day
            self._sites["requests"][:] = 0
