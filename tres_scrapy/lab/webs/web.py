"""The interface of offline webs: one deterministic answer, with its true label, per URL."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

HTML = (("Content-Type", "text/html; charset=utf-8"),)
TEXT = (("Content-Type", "text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, with facts about it that a crawler never sees.

    `kind` is page, redirect, soft404, missing, error, robots, trap, search (of the search engine),
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

    `search` is the URL of its search engine, with {query} in place of the escaped query. `https`
    is whether some of its URLs use https.
    """

    name: str
    seeds: tuple[str, ...]
    search: str
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
class FiniteWeb(Web, Hashable, Protocol):
    """A web whose pages are known."""

    @property
    def urls(self) -> Sequence[str]:
        """The URLs that have an answer; other URLs may lead to the same pages."""


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
