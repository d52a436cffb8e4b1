"""Which hosts can be sent a request now: not those that are busy, that rest or are given up."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Final

from tres_scrapy.config.download import RestOptions
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.host import has_port, origin_of
from tres_scrapy.frontier.store import SampleStore

JITTER: Final = 0.2  # share by which a pause is longer or shorter
PROBE: Final = 60.0  # most seconds between two probes of the network
FIRST: Final = 4  # domains that answered first, the seeds among them
LAST: Final = 8  # domains that answered last
ASKED: Final = 2  # of the latter, that a probe asks beside all of the former
WALLS: Final = 2  # for which a host rests that links of one other site led to
TOO_MANY: Final = Failure.of_status(429).kind  # an answer to us: the network is there


@dataclass(slots=True)
class Rest:
    """The rest of a host, the `number`-th in a row, until a time in seconds."""

    number: int
    until: float
    kind: str


class Health:
    """Decides which hosts rest, which are given up, and when the network seems gone.

    Hosts are healthy, resting or away (given up). A host is known once it has answered anything but
    a failure that passes, its robots.txt included. All times are in seconds of one clock.

    If hosts of the last `unreachable` registrable domains have failed, or of as many as are known,
    the network is in doubt: nothing is sent but a probe, requests to domains that answered before.
    If they fail, the network is gone: the rests that began since the last answer are forgotten. One
    domain, however many hosts it has, counts once.
    """

    def __init__(self, store: SampleStore, options: RestOptions, seed: int = 0) -> None:
        self.options = options
        self.given_up: dict[int, str] = {}  # the last failure by host
        self.rests = self.outages = 0  # that began
        self.gone_since: float | None = None  # the time since when the network is gone
        self._store = store
        self._random = Random(seed)
        self._rests: dict[int, Rest] = {}  # of hosts that failed since they last answered
        self._resting: dict[int, Rest] = {}  # those that are not over
        self._ends = math.inf  # when the first of the latter ends, or earlier
        self._dead: Counter[int] = Counter()  # hosts that never answered, by domain
        self._against: Counter[int] = Counter()  # rests that count for the host, by host
        self._walls: Counter[tuple[int, int]] = Counter()  # by host and the finder of the link
        self._ports = set[str]()  # origins with a port that have answered
        self._once = set(store.hosts.ever_given_up)  # by an earlier run: one more try
        self._silent: dict[int, Rest | None] = {}  # failed since any host answered; rest before
        # of the FIRST and the LAST domains that answered, such as http://a.test
        self._first: dict[int, str] = {}
        self._last: dict[int, str] = {}
        self._ports.update(filter(has_port, {origin_of(store.url(row)) for row in store.paths}))
        for row in [*islice(store.paths, FIRST), *store.last_pages(LAST).tolist()]:
            self._note_origin(int(store["domain"][row]), origin_of(store.url(row)))
        self._probes = 0  # that failed in a row
        self._waiting: dict[int, list[int]] = {}  # rows set back since their host last answered
        self._doubtful: set[int] = set()  # rows set back before that: their host is healthy now

    @property
    def in_doubt(self) -> bool:
        """Whether nothing but a probe may be sent."""
        hosts = self._store.hosts
        limit = min(self.options.unreachable, len(hosts.known_domains))
        if self.gone_since is not None or not self._first or not 0 < limit <= len(self._silent):
            return self.gone_since is not None
        domains = {hosts.domain(host) for host in self._silent}
        return len(domains) >= limit

    @property
    def silent(self) -> int:
        """The number of hosts that have failed since the last answer of any host."""
        return len(self._silent)

    def resting(self, now: float) -> list[int]:
        """Return the hosts that rest."""
        if now >= self._ends:  # looked through at each end, not at each of many choices
            self._resting = {host: rest for host, rest in self._resting.items() if rest.until > now}
            self._ends = min((rest.until for rest in self._resting.values()), default=math.inf)
        return list(self._resting)

    def promises(self, now: float) -> bool:
        """Return whether a host that rests has answered, with a status that passes."""
        kinds = (self._resting[host].kind for host in self.resting(now))
        return any(Failure(kind).is_status for kind in kinds)

    def until(self, now: float) -> float | None:
        """Return when the next host may be asked again, None if no host rests."""
        return min((self._resting[host].until for host in self.resting(now)), default=None)

    def exhausted(self, leased: int, now: float) -> bool:
        """Return whether nothing is left to fetch, with so many samples under way."""
        if not self._store.pending or self._store.hosts.known_domains or leased:
            return not self._store.pending
        # none of the hosts that rest has answered: it is not worth waiting
        return bool(self.resting(now)) and not self.promises(now)

    def note_answer(self, host: int | None, origin: str) -> None:
        """Note that a host answered a request, such as http://a.test; it is None if not known."""
        self._note_network()
        if has_port(origin):
            self._ports.add(origin)
        if host is not None:
            self._store.hosts.mark_known(host)
            domain = self._store.hosts.domain(host)
            self._forget_dead(domain)
            self._note_origin(domain, origin)

    def note_page(self, host: int) -> list[int]:
        """Note that a host answered for a sample; return the rows that were set back for it.

        This is to be noted when the answer arrives: when it is judged, the host may fail again.
        """
        self._end_rest(host)
        self._forget_failures(host)
        self._once.discard(host)
        rows = self._waiting.pop(host, [])
        self._doubtful.update(rows)
        return rows

    def note_booking(self, row: int) -> None:
        """Note that a row is booked: it will not be set back any more."""
        self._doubtful.discard(row)

    def blames(self, row: int, failure: Failure) -> bool:
        """Return whether a failure is the link's own: it fails while its host answers others.

        So does a link of another site to a port that has never answered.
        """
        asks = failure.retry_after is not None or failure.kind == TOO_MANY
        alone = row in self._doubtful and not asks and not self.in_doubt
        return not failure.passes or alone or self._is_astray(row, failure)

    def heeds_wall(self, row: int) -> bool:
        """Return whether a host rests for the wall that a link led to.

        The wall may show what the link of another site says, so only WALLS of these count.
        """
        if self._is_own(row):
            return True
        found = int(self._store["host"][row]), self._store.finder(row)
        self._walls[found] += 1
        return self._walls[found] <= WALLS

    def set_back(self, row: int, host: int) -> bool:
        """Note that a row waits for its host; return whether other links are to be tried first.

        They are if the host never answered, or if the row failed twice and no other was tried.
        """
        self._doubtful.discard(row)
        rows = self._waiting.setdefault(host, [])
        if row not in rows:
            rows.append(row)
            return not self._store.hosts.is_known(host)
        return True

    def note_failure(
        self, host: int, failure: Failure, now: float, row: int | None = None
    ) -> Rest | None:
        """Put a host to rest; return the rest that begins, None if the host or the row is given up.

        While the network is gone, and for requests sent before the rest began, nothing changes. A
        host that has answered is given up only if its own links fail, or those of many sites. If
        others do, each of these sites loses its links to the host.
        """
        rest = self._rests.get(host)
        asked = failure.retry_after or 0.0
        if not asked and failure.kind != TOO_MANY:
            self._silent.setdefault(host, rest)
        if self.gone_since is not None or host in self.given_up:
            return rest or Rest(0, now, failure.kind)
        if rest is not None and now < rest.until:
            rest.until = max(rest.until, now + min(asked, self.options.longest))
            return rest
        number = 1 + (rest.number if rest is not None else 0)
        domain, is_known = self._store.hosts.domain(host), self._store.hosts.is_known(host)
        finder = domain if row is None else self._store.finder(row)
        self._against[host] += self._store.hosts.failing.note(host, finder, own=finder == domain)
        if number > self._most(host):
            self._end_rest(host)
            if not is_known or self._against[host] > self._most(host):
                self._give_up(host, failure.kind)
            return None
        if number == 1 and not is_known:
            self._count_dead(domain, finder)
        pause = (
            self.options.first * 2 ** (number - 1) * self._random.uniform(1 - JITTER, 1 + JITTER)
        )
        if asked:  # to the second, unless it has failed after such a pause
            pause = asked if number == 1 else max(pause, asked)
        self.rests += 1
        return self.rest(host, Rest(number, now + pause, failure.kind), now)

    def rest(self, host: int, rest: Rest, now: float) -> Rest:
        """Put a host to rest, for an hour at most; the rest may have begun before."""
        rest.until = min(rest.until, now + self.options.longest)
        self._rests[host] = self._resting[host] = rest
        self._ends = min(self._ends, rest.until)
        return rest

    def origins(self) -> list[str]:
        """Return origins to probe, some of them others at each call; none if no host has answered.

        Hosts that answered early cannot be pushed out by those of an attacker.
        """
        turn = list(self._last)[:ASKED]
        for domain in turn:
            self._last[domain] = self._last.pop(domain)
        return [*self._first.values(), *(self._last[domain] for domain in turn)]

    def note_probe(self, answered: bool, now: float) -> float | None:
        """Note the outcome of a probe; return the pause before the next one.

        Return None if no other is needed: the network is back, or has been gone for too long.
        """
        if answered:
            self._note_network()
            return None
        if self.gone_since is None:
            self.gone_since = now
            self.outages += 1
            self._forget_rests()
        if now - self.gone_since >= self.options.outage:
            return None
        pause = min(PROBE, self.options.first * 2.0**self._probes)
        self._probes += 1
        return min(pause, self.gone_since + self.options.outage - now)

    def _note_origin(self, domain: int, origin: str) -> None:
        """Note that a domain has answered now."""
        if domain in self._first or len(self._first) < FIRST:
            self._first[domain] = origin
            return
        self._last.pop(domain, None)
        self._last[domain] = origin
        if len(self._last) > LAST:
            del self._last[next(iter(self._last))]

    def _note_network(self) -> None:
        self.gone_since, self._probes = None, 0
        self._silent.clear()

    def _most(self, host: int) -> int:
        if host in self._once:
            return 0
        return (
            self.options.most if self._store.hosts.is_known(host) else (self.options.most + 1) // 2
        )

    def _give_up(self, host: int, kind: str) -> None:
        self.given_up[host] = kind
        self._store.hosts.give_up(host)

    def _is_own(self, row: int) -> bool:
        return self._store.finder(row) == int(self._store["domain"][row])

    def _is_astray(self, row: int, failure: Failure) -> bool:
        """Return whether a link of another site leads to a port that has never answered."""
        origin = origin_of(self._store.url(row))
        is_there = failure.is_status or not has_port(origin) or origin in self._ports
        return not (is_there or self.in_doubt or self._is_own(row))

    def _count_dead(self, domain: int, finder: int) -> None:
        """Count a host that never answered; a trap can create any number of hosts in a domain."""
        ledger = self._store.ledger
        self._dead[domain] += ledger.dead_hosts.note(domain, finder, own=finder == domain)
        if self._dead[domain] >= ledger.limits.failures:
            ledger.give_up(domain)

    def _forget_dead(self, domain: int) -> None:
        self._dead.pop(domain, None)
        self._store.ledger.dead_hosts.forget(domain)

    def _forget_failures(self, host: int) -> None:
        self._store.hosts.failing.forget(host)
        self._against.pop(host, None)

    def _end_rest(self, host: int) -> None:
        self._rests.pop(host, None)
        self._resting.pop(host, None)

    def _forget_rests(self) -> None:
        """Forget the rests that began since the last answer: the network was gone."""
        for host, before in self._silent.items():
            self._end_rest(host)
            self._forget_failures(host)
            if before is not None:
                self._rests[host] = before
            elif not self._store.hosts.is_known(host):
                self._forget_dead(self._store.hosts.domain(host))
