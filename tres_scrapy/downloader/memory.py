"""Remembers of each domain whether its pages need a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Self

from tres_scrapy.page.file import whole_file

if TYPE_CHECKING:
    from pathlib import Path

CERTAIN: Final = 3  # pages in a row that all helped, or all did not: then nobody looks any more
RETRIAL: Final = 25  # of the pages of a domain that needs no browser, one of so many is tried
LARGEST: Final = 100_000  # domains remembered, the last ones used
_LONGEST_NAME: Final = 253


class DomainMemory:
    """Counts for each domain how often a rendering helped, less how often it did not.

    At CERTAIN every page of the domain is rendered; at the opposite none of it is, except one of
    RETRIAL pages that look as if they waited for scripts. In between, each page that looks so is.
    """

    def __init__(self, scores: dict[str, int] | None = None) -> None:
        self._scores = dict(scores or {})  # by domain, those used last at the end
        self._passed: dict[str, int] = {}  # pages left alone since the last trial

    def wants(self, domain: str, *, looks_empty: bool) -> bool:
        """Return whether a page of a domain is to be rendered, given how it looks without."""
        score = self._scores.get(domain, 0)
        if score >= CERTAIN:
            return True
        if not looks_empty or score > -CERTAIN:
            return looks_empty
        self._passed[domain] = self._passed.get(domain, 0) + 1
        return self._passed[domain] % RETRIAL == 0

    def learn(self, domain: str, *, helped: bool) -> None:
        """Note whether the rendering of a page of a domain has helped."""
        score = self._scores.pop(domain, 0) + (1 if helped else -1)
        self._scores[domain] = max(-CERTAIN, min(CERTAIN, score))
        if score > -CERTAIN:
            self._passed.pop(domain, None)
        if len(self._scores) > LARGEST:
            oldest = next(iter(self._scores))
            del self._scores[oldest]
            self._passed.pop(oldest, None)

    def known(self, *, to_need: bool) -> int:
        """Return the number of domains known to need a browser, or not to."""
        wanted = CERTAIN if to_need else -CERTAIN
        return sum(score == wanted for score in self._scores.values())

    def save(self, path: Path) -> None:
        """Write the scores down; OSError: it cannot be done."""
        with whole_file(path) as file:
            file.write(json.dumps(self._scores).encode())

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` has written, an empty memory if nothing was; ValueError: no memory."""
        if not path.exists():
            return cls()
        if path.is_symlink() or not path.is_file():
            raise ValueError(f"{path.name} is not a plain file")
        try:
            scores = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            scores = None
        if not isinstance(scores, dict) or not all(_is_entry(*entry) for entry in scores.items()):
            raise ValueError(f"{path.name} is no memory of domains")
        return cls(scores)


def _is_entry(domain: str, score: object) -> bool:
    return len(domain) <= _LONGEST_NAME and type(score) is int and abs(score) <= CERTAIN
