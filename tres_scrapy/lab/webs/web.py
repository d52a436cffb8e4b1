"""The interface of offline webs: one deterministic answer, with its true label, per URL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Protocol, TextIO, runtime_checkable

from tres_scrapy.url.canonical import domain_of

HTML = (("Content-Type", "text/html; charset=utf-8"),)
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, with facts about it that a crawler never sees.

    `kind` is page, redirect, soft404, missing, error, robots, trap, search (of a site),
    other (not HTML) or unrecorded (not in the recording). `relevant` is the true label of the
    content. The server waits `delay` seconds before it answers, and writes `facts` to its log.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    kind: str
    relevant: bool = False
    site_kind: str = ""
    delay: float = 0.0
    facts: Mapping[str, object] = field(default_factory=dict)


class Web(Protocol):
    """A web that can be crawled without a network.

    `https` is whether some of its URLs use https.
    """

    name: str
    seeds: tuple[str, ...]
    https: bool

    @property
    def labelled(self) -> bool:
        """Whether its pages have true labels."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines that the user of the web should read."""

    def answer(self, url: str) -> Answer:
        """Return the answer to an absolute URL; the kind for an unknown host is `missing`."""

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return whether each URL, after redirects, is a relevant page."""


@runtime_checkable
class FormWeb(Web, Protocol):
    """A web with forms that use POST."""

    def submit(self, url: str, body: str) -> Answer:
        """Return the answer to a form posted to an absolute URL."""


@runtime_checkable
class LiveWeb(Web, Protocol):
    """A web whose answers depend on the time and on the header fields of the request."""

    def respond(self, url: str, fields: Mapping[str, str]) -> Answer:
        """Return the answer to a request with these header fields, names in lower case."""


def unknown_host(host: str) -> Answer:
    """Return a proxy's answer for a host that is not in this web."""
    return Answer(502, f"no such host in this web: {host}\n".encode(), TEXT, "missing")


PAGES = (
    "page",
    "trap",
)  # HTML with status 200, soft 404s left out; a trap never counts as relevant


class Count:
    """Counts the answers given to a crawler, and how politely the crawler asked.

    `begin` and `end` bracket a transfer, with times in seconds of one clock; `add` counts its
    answer and writes it to the log as one JSON line.
    """

    def __init__(self, log: TextIO | None = None) -> None:
        self.log = log
        self.fetches, self.pages, self.relevant = 0, 0, 0
        self.by_kind: Counter[str] = Counter()
        self.domains: set[str] = set()
        self.seen: set[str] = set()
        self.open: Counter[str] = Counter()
        self.last: dict[str, float] = {}
        self.max_simultaneous: dict[str, int] = {}
        self.min_gap: dict[str, float] = {}

    def begin(self, host: str, time: float) -> None:
        """Note that a request for a host has come in."""
        self.open[host] += 1
        self.max_simultaneous[host] = max(self.open[host], self.max_simultaneous.get(host, 0))
        if host in self.last:
            self.min_gap[host] = min(time - self.last[host], self.min_gap.get(host, inf))
        self.last[host] = time

    def end(self, host: str) -> None:
        """Note that the answer to a request for a host has left."""
        self.open[host] -= 1

    def add(self, url: str, answer: Answer, time: float = 0.0) -> None:
        """Count one answer; a repeated URL is another fetch but not another page."""
        duplicate = url in self.seen
        self.seen.add(url)
        self.fetches += 1
        self.by_kind[answer.kind] += 1
        if answer.kind in PAGES and not duplicate:
            self._add_page(url, answer)
        if self.log:
            row = {
                "time": round(time, 3), "url": url, "status": answer.status, "kind": answer.kind,
                "relevant": answer.relevant, "site_kind": answer.site_kind, "duplicate": duplicate,
                **answer.facts,
            }  # fmt: skip
            self.log.write(json.dumps(row) + "\n")

    def _add_page(self, url: str, answer: Answer) -> None:
        self.pages += 1
        if answer.kind == "page" and answer.relevant:
            self.relevant += 1
            self.domains.add(domain_of(url))

    @property
    def harvest(self) -> float:
        """Return the share of relevant pages, 0 before the first page."""
        return self.relevant / self.pages if self.pages else 0.0

    def summary(self) -> dict[str, object]:
        """Return the count as one JSON object, with the least polite host of each kind."""
        return {
            "fetches": self.fetches,
            "pages": self.pages,
            "relevant": self.relevant,
            "harvest": round(self.harvest, 4),
            "domains": len(self.domains),
            "by_kind": dict(self.by_kind),
            "max_simultaneous": max(self.max_simultaneous.values(), default=0),
            "min_gap": round(min(self.min_gap.values()), 4) if self.min_gap else None,
        }
