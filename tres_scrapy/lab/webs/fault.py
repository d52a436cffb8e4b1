"""Faults that an offline web injects by a schedule: hosts that are away, answers that break."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final, NamedTuple, Protocol, Self
from urllib.parse import urlsplit

from tres_scrapy.url.message import TresError

OUTAGE, BUSY, ERROR = "outage", "busy", "error"
DNS, TLS = "dns", "tls"
RESET, DRIP, LENGTH = "reset", "drip", "length"
OF_HOSTS: Final = {  # they last SECONDS
    OUTAGE: "every connection is closed without an answer",
    BUSY: "429 with a Retry-After",
    ERROR: "503",
    DNS: "502, as a proxy answers for a name that cannot be resolved",
    TLS: "the TLS handshake fails (https only)",
}
OF_REQUESTS: Final = {
    RESET: "the connection is reset",
    DRIP: "the body takes SECONDS",
    LENGTH: "Content-Length is too long, and the connection ends",
}
DEFAULT: Final = "outage=0.05:20,busy=0.05:20,error=0.02:20,reset=0.02,drip=0.02:2,length=0.02"
RULE: Final = "KIND=SHARE:SECONDS, joined by commas"


class Fault(NamedTuple):
    """What is wrong with an answer: the kind, the seconds it lasts, a status other than usual."""

    kind: str
    seconds: float
    status: int = 0


class Faults(Protocol):
    """Decides which requests fail."""

    def meet(self, url: str, now: float) -> Fault | None:
        """Return the fault that a request for a URL meets at a time in seconds, if any."""


class FaultSchedule:
    """Draws faults by a random seed.

    Of all hosts, a share has a fault of hosts for SECONDS, then other hosts have it. Of all
    requests, a share meets a fault of requests. The draw depends on the seed, on the host and the
    time since the first request, or on the URL and how often it was asked for.
    """

    def __init__(self, rules: dict[str, tuple[float, float]], seed: int = 0) -> None:
        self._rules = rules
        self._seed = seed
        self._start: float | None = None
        self._asked: Counter[str] = Counter()

    @classmethod
    def parse(cls, text: str, seed: int = 0) -> Self:
        """Read a schedule such as DEFAULT, or the word "default"; raise TresError if it is bad."""
        rules = {}
        for part in (DEFAULT if text == "default" else text).split(","):
            kind, _, values = part.strip().partition("=")
            share, _, seconds = values.partition(":")
            try:
                rules[kind] = float(share), float(seconds or 0)
            except ValueError:
                raise TresError(f"faults {part!r} must be {RULE}") from None
            if kind not in OF_HOSTS | OF_REQUESTS:
                known = ", ".join(OF_HOSTS | OF_REQUESTS)
                raise TresError(f"faults {part!r}: {kind!r} must be one of {known}")
            if not 0 <= rules[kind][0] <= 1 or not 0 <= rules[kind][1] < float("inf"):
                raise TresError(f"faults {part!r}: SHARE must be 0 to 1, SECONDS 0 or more")
            if kind in OF_HOSTS and not rules[kind][1]:
                raise TresError(f"faults {part!r}: {kind} needs SECONDS: {kind}={share}:20")
        return cls(rules, seed)

    def meet(self, url: str, now: float) -> Fault | None:
        """Return the fault that a request for a URL meets at a time in seconds, if any."""
        self._start = now if self._start is None else self._start
        self._asked[url] += 1
        for kind, (share, seconds) in self._rules.items():
            place, left = f"{url} {self._asked[url]}", seconds
            if kind in OF_HOSTS:
                period, past = divmod(now - self._start, seconds)
                place, left = f"{urlsplit(url).hostname} {period:.0f}", seconds - past
            if Random(f"{self._seed} {kind} {place}").random() < share:
                return Fault(kind, left)
        return None
