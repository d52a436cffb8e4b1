"""What every offline web answers: one deterministic answer, with its true label, per URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

HTML = (("Content-Type", "text/html; charset=utf-8"),)
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer and the truth about it that a crawler never sees.

    `kind` is page, redirect, soft404, missing, error, robots, trap, search (of the search engine)
    or other (not HTML); `relevant` is the true label of the content; the server waits `delay`
    seconds before it answers.
    """

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...]
    kind: str
    relevant: bool = False
    site_kind: str = ""
    delay: float = 0.0


class Web(Protocol):
    """A web that can be crawled without a network.

    `search` is the URL of its own search engine, with {query} where the escaped query goes.
    """

    name: str
    seeds: tuple[str, ...]
    search: str

    def answer(self, url: str) -> Answer:
        """Return the answer to an absolute URL, always the same one; an unknown host is missing."""

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Tell which URLs, followed through redirects, bring a page that counts as relevant."""


def unknown_host(host: str) -> Answer:
    """Return what a proxy says of a host this web does not have."""
    return Answer(502, f"no such host in this web: {host}\n".encode(), TEXT, "missing")
