"""What a crawler has asked for, counted from the log of the web that answered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tres_scrapy.lab.webs.recorded import key

ROBOTS = "/robots.txt"


@dataclass
class Tally:
    """Requests of a crawl up to a limit, those for robots.txt apart.

    `found` has the number of the request that brought each relevant page, from 1; a page counts
    once. `times` holds the seconds of the first and the last counted request, since the epoch.
    """

    limit: int
    requests: int = 0
    robots: int = 0
    found: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    @property
    def full(self) -> bool:
        """Whether the limit is reached."""
        return self.requests >= self.limit

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a line of the web's log; lines behind the limit do not count."""
        if self.full:
            return
        url = key(row["url"])
        if urlsplit(url).path == ROBOTS:
            self.robots += 1
            return
        self.requests += 1
        self.times[1:] = [row["time"]] if self.times else []
        self.times = self.times or [row["time"], row["time"]]
        if row["kind"] == "page" and row["relevant"] and url not in self._seen:
            self.found.append(self.requests)
        self._seen.add(url)


def relevant_at(found: Sequence[int], requests: int) -> int:
    """Return how many relevant pages the first requests brought."""
    return sum(number <= requests for number in found)


class Follower:
    """Reads what has been added to a log; an incomplete last line is read the next time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = 0

    def read(self, tally: Tally) -> None:
        """Count the new lines."""
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if line.endswith(b"\n"):
                    self._offset += len(line)
                    tally.add(json.loads(line))
