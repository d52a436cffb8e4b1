"""What a crawl fetched: the server's own count, from the true labels."""

from __future__ import annotations

import json
from collections import Counter
from math import inf
from typing import TextIO

from tres_scrapy.lab.webs.web import Answer
from tres_scrapy.url.domain import domain_of

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
