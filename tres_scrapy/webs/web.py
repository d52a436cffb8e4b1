"""What every offline web answers: one deterministic answer, with its true label, per URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

HTML = (("Content-Type", "text/html; charset=utf-8"),)
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer and the truth about it that a crawler never sees.

    `kind` is page, redirect, soft404, missing, error, robots, trap, search (of the search engine),
    other (not HTML) or unrecorded (not in the recording); `relevant` is the true label of the
    content; the server waits `delay` seconds before it answers; `facts` go into its log as they
    are.
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

    `search` is the URL of its own search engine, with {query} where the escaped query goes;
    `https` says whether some of its URLs are secure; `notes` are lines for the user.
    """

    name: str
    seeds: tuple[str, ...]
    search: str
    https: bool

    @property
    def notes(self) -> tuple[str, ...]:
        """Lines that the user of the web should read."""

    def answer(self, url: str) -> Answer:
        """Return the answer to an absolute URL, always the same one; an unknown host is missing."""

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Tell which URLs, followed through redirects, bring a page that counts as relevant."""


@runtime_checkable
class FormWeb(Web, Protocol):
    """A web that has forms to post."""

    def submit(self, url: str, body: str) -> Answer:
        """Return the answer to a form posted to an absolute URL."""


@runtime_checkable
class LiveWeb(Web, Protocol):
    """A web whose answers depend on the time and on the header fields of the request."""

    def respond(self, url: str, fields: Mapping[str, str]) -> Answer:
        """Return the answer to a request with these fields, their names in lower case."""


def unknown_host(host: str) -> Answer:
    """Return what a proxy says of a host this web does not have."""
    return Answer(502, f"no such host in this web: {host}\n".encode(), TEXT, "missing")
