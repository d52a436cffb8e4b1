"""Remembers for each domain whether its pages need a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Self

from tres_scrapy.url.whole_file import whole_file

if TYPE_CHECKING:
    from pathlib import Path

CERTAIN: Final = 3  # a domain is decided when its score is this, or minus this
RETRIAL: Final = 25  # a domain that needs no browser: one in so many pages is tried
LARGEST: Final = 100_000  # domains remembered; the least recently used is dropped
_LONGEST_NAME: Final = 253


class DomainMemory:
    """Scores each domain: +1 for each rendering that helped, -1 for each that did not.

    At CERTAIN, every page of the domain is rendered. At -CERTAIN, only one in RETRIAL of the pages
    that look empty is. In between, each page that looks empty is rendered.
    """

    def __init__(self, scores: dict[str, int] | None = None) -> None:
        self._scores = dict(scores or {})  # by domain, least recently used first
        self._passed: dict[str, int] = {}  # by domain, empty pages since it was decided

    def wants(self, domain: str, *, looks_empty: bool) -> bool:
        """Return whether to render a page; `looks_empty` is how it looks before rendering."""
        score = self._scores.get(domain, 0)
        if score >= CERTAIN:
            return True
        if not looks_empty or score > -CERTAIN:
            return looks_empty
        self._passed[domain] = self._passed.get(domain, 0) + 1
        return self._passed[domain] % RETRIAL == 0

    def learn(self, domain: str, *, helped: bool) -> None:
        """Record whether rendering a page of a domain helped."""
        score = self._scores.pop(domain, 0) + (1 if helped else -1)
        self._scores[domain] = max(-CERTAIN, min(CERTAIN, score))
        if score > -CERTAIN:
            self._passed.pop(domain, None)
        if len(self._scores) > LARGEST:
            oldest = next(iter(self._scores))
            del self._scores[oldest]
            self._passed.pop(oldest, None)

    def known(self, *, to_need: bool) -> int:
        """Return how many domains are known to need a browser, or not to need one."""
        wanted = CERTAIN if to_need else -CERTAIN
        return sum(score == wanted for score in self._scores.values())

    def save(self, path: Path) -> None:
        """Save the scores; raise OSError if that fails."""
        with whole_file(path) as file:
            file.write(json.dumps(self._scores).encode())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote, empty if there is no file; raise ValueError if it is damaged."""
        if not path.exists():
            return cls()
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"{path.name} is not a plain file")
        try:
            scores = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            scores = None
        if not isinstance(scores, dict) or not all(_is_entry(*entry) for entry in scores.items()):
            raise ValueError(f"{path.name} is not a file of render scores")
        return cls(scores)


def _is_entry(domain: str, score: object) -> bool:
    return len(domain) <= _LONGEST_NAME and type(score) is int and abs(score) <= CERTAIN
