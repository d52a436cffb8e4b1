"""The gate: the HTTP proxy through which alone the browser reaches the web."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from tres_scrapy.url.public_address import is_public, may_be_public
from tres_scrapy.webs.local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

LONGEST_HEAD: Final = 256 * 1024  # bytes of the head of a request or an answer, as in handler.py
CONNECT_TIMEOUT: Final = 20.0  # seconds, for the name and all its addresses
CHUNK: Final = 64 * 1024
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# of this connection, not of what passes through it
HOP_BY_HOP: Final = frozenset(
    {b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te"}
)


class Parent(NamedTuple):
    """The user's own proxy, which resolves names; `authorization` is that header's value."""

    scheme: str
    host: str
    port: int
    authorization: str = ""

    @classmethod
    def parse(cls, url: str, authorization: str = "") -> Parent:
        """Read the URL of a proxy; raise ValueError if it is none that speaks HTTP."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise ValueError(f"the proxy {url!r} must be an http(s) URL: a browser is led to it")
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        return cls(parts.scheme, parts.hostname, port, authorization)


@dataclass(frozen=True)
class GateRule:
    """Whom the gate lets through: `resolve` returns the addresses of a host."""

    resolve: Callable[[str], Awaitable[list[str]]]
    private: bool = False  # whether this machine and its network may be reached
    longest: int = 32 * 1024 * 1024  # bytes of an answer, or of all that a tunnel brings


class RefusedError(Exception):
    """Says why a connection is not made."""


class _Stream(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class _Head(NamedTuple):
    line: bytes
    fields: list[bytes]

    def passed_on(self, line: bytes | None = None, more: tuple[bytes, ...] = ()) -> bytes:
        """Return the head as it goes on, over a connection for this one exchange."""
        fields = [each for each in self.fields if _name(each) not in HOP_BY_HOP]
        lines = [self.line if line is None else line, *fields, *more, b"Connection: close"]
        return b"\r\n".join([*lines, b"", b""])


class BrowserGate:
    """Connects the browser to public addresses only, whatever asks: pages, scripts or WebSockets.

    It resolves each name itself and connects to the very address that it has checked. Behind a
    parent, which resolves names, a host is judged by its name alone, as everywhere in TRES.
    `refused` counts by reason.
    """

    def __init__(self, rule: GateRule, parent: Parent | None = None) -> None:
        self._rule = rule
        self._parent = parent
        self._credentials: tuple[bytes, ...] = ()
        if parent is not None and parent.authorization:
            self._credentials = (b"Proxy-Authorization: " + parent.authorization.encode("latin-1"),)
        self._server = LocalServer(self._serve, LONGEST_HEAD)
        self.refused = Counter[str]()

    async def start(self) -> int:
        """Listen on a free local port and return it."""
        return await self._server.start()

    async def stop(self) -> None:
        """Close the port and every connection."""
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._exchange(_Stream(reader, writer))

    async def _exchange(self, browser: _Stream) -> None:
        """Do what the browser asks for on a connection: one exchange, or a tunnel."""
        try:
            head = await _read_head(browser.reader)
            method, _, rest = head.line.decode("latin-1").partition(" ")
            target = rest.rpartition(" ")[0]
            if method == "CONNECT":
                await self._tunnel(target, browser)
            else:
                await self._forward(method, target, head, browser)
        except RefusedError as refusal:
            self.refused[str(refusal)] += 1
            _answer(browser, 403, str(refusal))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            _answer(browser, 502, type(error).__name__)

    async def _tunnel(self, target: str, browser: _Stream) -> None:
        place = urlsplit(f"//{target}")
        web = await self._connect(place.hostname, place.port or DEFAULT_PORTS["https"])
        try:
            if self._parent is not None:
                name = target.encode("latin-1")
                head = _Head(b"CONNECT " + name + b" HTTP/1.1", [b"Host: " + name])
                web.writer.write(head.passed_on(more=self._credentials))
                answer = await _read_head(web.reader)
                if _status(answer) != 200:
                    raise ConnectionError("the proxy makes no tunnel")
            browser.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self._join(browser, web)
        finally:
            web.writer.close()

    async def _forward(self, method: str, url: str, head: _Head, browser: _Stream) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http":
            raise RefusedError("not http")
        web = await self._connect(parts.hostname, parts.port or DEFAULT_PORTS["http"])
        try:
            place = url if self._parent is not None else f"{parts.path or '/'}?{parts.query}"
            line = f"{method} {place.removesuffix('?')} HTTP/1.1".encode("latin-1")
            web.writer.write(head.passed_on(line, self._credentials))
            await self._join(browser, web, answers=True)
        finally:
            web.writer.close()

    async def _join(self, browser: _Stream, web: _Stream, *, answers: bool = False) -> None:
        """Carry bytes both ways until either side ends, or the answer is longer than allowed."""
        ways = [
            asyncio.create_task(_copy(browser.reader, web.writer)),
            asyncio.create_task(_bring(web, browser, self._rule.longest, answers=answers)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _connect(self, host: str | None, port: int) -> _Stream:
        if not host or not (self._rule.private or may_be_public(host)):
            raise RefusedError("a private name or address")
        async with asyncio.timeout(CONNECT_TIMEOUT):
            if (parent := self._parent) is not None:
                return await _open(parent.host, parent.port, secure=parent.scheme == "https")
            found = await self._rule.resolve(host)
            public = [each for each in found if self._rule.private or is_public(ip_address(each))]
            if found and not public:
                raise RefusedError("a name whose addresses are private")
            for address in public:
                with suppress(OSError):
                    return await _open(address, port)
        raise ConnectionError("no address answers")


async def _open(host: str, port: int, *, secure: bool = False) -> _Stream:
    return _Stream(
        *await asyncio.open_connection(host, port, ssl=secure or None, limit=LONGEST_HEAD)
    )


async def _bring(web: _Stream, browser: _Stream, longest: int, *, answers: bool) -> None:
    if answers:
        while _status(head := await _read_head(web.reader)) < 200:
            pass  # an early hint: the answer follows
        browser.writer.write(head.passed_on())
    await _copy(web.reader, browser.writer, longest)


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, longest: float = inf
) -> None:
    while longest > 0 and (chunk := await reader.read(CHUNK)):
        writer.write(chunk)
        await writer.drain()
        longest -= len(chunk)


async def _read_head(reader: asyncio.StreamReader) -> _Head:
    line, *fields = (await reader.readuntil(b"\r\n\r\n")).removesuffix(b"\r\n\r\n").split(b"\r\n")
    return _Head(line, fields)


def _status(head: _Head) -> int:
    return int(head.line.split()[1])


def _name(field: bytes) -> bytes:
    return field.partition(b":")[0].strip().lower()


def _answer(browser: _Stream, status: int, reason: str) -> None:
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: text/plain\r\n"
    text = f"{head}Content-Length: {len(reason)}\r\nConnection: close\r\n\r\n{reason}"
    browser.writer.write(text.encode("latin-1"))
