"""The gate: a local HTTP proxy, the browser's only way to the web."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import closing, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from math import inf
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import h11

from tres_scrapy.config.typed import typed
from tres_scrapy.url.message import TresError
from tres_scrapy.url.public_address import is_public, may_be_public

LONGEST_HEAD: Final = 256 * 1024  # bytes of all headers of a message, as in handler.py
CONNECT_TIMEOUT: Final = 20.0  # seconds to resolve a name and try all its addresses
CHUNK: Final = 64 * 1024
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
# headers of one connection, which a proxy does not pass on
HOP_BY_HOP: Final = frozenset(
    {b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive", b"te"}
)

CLOSE: Final = (b"Connection", b"close")

Header = tuple[bytes, bytes]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Parent(NamedTuple):
    """The user's own proxy, which resolves names; `authorization` is its Proxy-Authorization."""

    scheme: str
    host: str
    port: int
    authorization: str = ""

    @classmethod
    def parse(cls, url: str, authorization: str = "") -> Parent:
        """Parse the URL of a proxy; raise TresError if it is not an http(s) URL."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
            raise TresError(
                f"the proxy {url!r} must be an http(s) URL to be used with {typed('render')}"
            )
        port = parts.port or DEFAULT_PORTS[parts.scheme]
        return cls(parts.scheme, parts.hostname, port, authorization)


@dataclass(frozen=True)
class GateRule:
    """Which connections the gate allows; `resolve` returns the addresses of a host."""

    resolve: Callable[[str], Awaitable[list[str]]]
    private: bool = False  # whether private addresses are allowed
    longest: int = 32 * 1024 * 1024  # bytes of a response, or that a tunnel receives


class RefusedError(Exception):
    """Raised with the reason when the gate refuses a connection."""


class _Stream(NamedTuple):
    """One end of an HTTP/1.1 connection, parsed and written by h11."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    http: h11.Connection

    async def receive(self) -> h11.Event:
        """Return the next event; raise h11.RemoteProtocolError for bad HTTP or a second message."""
        while (event := self.http.next_event()) is h11.NEED_DATA:
            self.http.receive_data(await self.reader.read(CHUNK))
        if isinstance(event, type):  # h11.PAUSED
            raise h11.RemoteProtocolError("more follows than one message")
        return event

    async def send(self, *events: h11.Event) -> None:
        self.writer.write(b"".join(self.http.send(event) or b"" for event in events))
        await self.writer.drain()


class LocalServer:
    """Calls `serve` for each connection to a local port, and closes the connection afterwards.

    A broken connection (OSError, EOFError) is ignored. `limit` is the most bytes that a
    StreamReader holds for `readuntil`.
    """

    def __init__(self, serve: Serve, limit: int) -> None:
        self._serve = serve
        self._limit = limit
        self._connections: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def start(self, port: int = 0) -> int:
        """Listen on a port, 0 for any free one, and return it; raise OSError if it is taken."""
        self._server = await asyncio.start_server(
            self._connect, "127.0.0.1", port, limit=self._limit
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the port and every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # every coroutine of the loop runs in a task
        self._connections.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.CancelledError):
                await self._serve(reader, writer)
        finally:
            self._connections.discard(task)
            writer.close()


class BrowserGate(LocalServer):
    """Connects pages, scripts and WebSockets of the browser to public addresses only.

    The gate resolves each name and connects to the address that it has checked. With a parent
    proxy, which resolves names, only the host name is checked, as everywhere in TRES.
    `refused` counts refused connections by reason.
    """

    def __init__(self, rule: GateRule, parent: Parent | None = None) -> None:
        super().__init__(self._exchange, LONGEST_HEAD)
        self._rule = rule
        self._parent = parent
        self._credentials: list[Header] = []
        if parent is not None and parent.authorization:
            secret = parent.authorization.encode("latin-1")
            self._credentials.append((b"Proxy-Authorization", secret))
        self.refused = Counter[str]()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the browser: one exchange, or a tunnel."""
        browser = _Stream(reader, writer, h11.Connection(h11.SERVER, LONGEST_HEAD))
        try:
            request = await browser.receive()
            if isinstance(request, h11.Request):
                serve = self._tunnel if request.method == b"CONNECT" else self._forward
                await serve(request, browser)
        except RefusedError as refusal:
            self.refused[str(refusal)] += 1
            await _answer(browser, 403, str(refusal))
        except (OSError, EOFError, ValueError, h11.ProtocolError) as error:
            await _answer(browser, 502, type(error).__name__)

    async def _tunnel(self, asked: h11.Request, browser: _Stream) -> None:
        await browser.receive()  # the end of the request
        place = urlsplit(f"//{asked.target.decode()}")
        web = await self._open_web(place.hostname, place.port or DEFAULT_PORTS["https"])
        with closing(web.writer):
            if self._parent is not None:
                headers = [(b"Host", asked.target), *self._credentials, CLOSE]
                request = h11.Request(method=b"CONNECT", target=asked.target, headers=headers)
                await web.send(request, h11.EndOfMessage())
                if (await _read_answer(web)).status_code != 200:
                    raise ConnectionError("the proxy refused the tunnel")
            await browser.send(h11.Response(status_code=200, headers=[]))
            await _join(_copy(browser, web), _copy(web, browser, self._rule.longest))

    async def _forward(self, asked: h11.Request, browser: _Stream) -> None:
        url = asked.target.decode()
        parts = urlsplit(url)
        if parts.scheme != "http":
            raise RefusedError("not http")
        web = await self._open_web(parts.hostname, parts.port or DEFAULT_PORTS["http"])
        with closing(web.writer):
            place = url if self._parent is not None else f"{parts.path or '/'}?{parts.query}"
            place = place.removesuffix("?")
            headers = _passed_on(asked, *self._credentials)
            await web.send(h11.Request(method=asked.method, target=place, headers=headers))
            await _join(_pass_body(browser, web), _pass_answer(web, browser, self._rule.longest))

    async def _open_web(self, host: str | None, port: int) -> _Stream:
        if not host or not (self._rule.private or may_be_public(host)):
            raise RefusedError("a private name or address")
        async with asyncio.timeout(CONNECT_TIMEOUT):
            if (parent := self._parent) is not None:
                return await _open(parent.host, parent.port, secure=parent.scheme == "https")
            found = await self._rule.resolve(host)
            public = [each for each in found if self._rule.private or is_public(ip_address(each))]
            if found and not public:
                raise RefusedError("a name with private addresses only")
            for address in public:
                with suppress(OSError):
                    return await _open(address, port)
        raise ConnectionError("no address answers")


async def _open(host: str, port: int, *, secure: bool = False) -> _Stream:
    reader, writer = await asyncio.open_connection(host, port, ssl=secure or None)
    return _Stream(reader, writer, h11.Connection(h11.CLIENT, LONGEST_HEAD))


async def _join(*ways: Coroutine[object, object, None]) -> None:
    """Copy in both directions until one side ends or the response exceeds its limit."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pass_body(browser: _Stream, web: _Stream) -> None:
    """Pass on the body of a request, then wait until the browser disconnects."""
    while not isinstance(event := await browser.receive(), h11.ConnectionClosed):
        await web.send(event)


async def _pass_answer(web: _Stream, browser: _Stream, longest: int) -> None:
    event: h11.Event = (answer := await _read_answer(web))
    headers, status = _passed_on(answer), answer.status_code
    await browser.send(h11.Response(status_code=status, headers=headers, reason=answer.reason))
    while longest > 0 and not isinstance(event, h11.EndOfMessage):
        event = await web.receive()
        await browser.send(event)
        longest -= len(event.data) if isinstance(event, h11.Data) else 0


async def _copy(source: _Stream, target: _Stream, longest: float = inf) -> None:
    """Copy the bytes of a tunnel, beginning with those received along with the headers."""
    chunk = source.http.trailing_data[0] or await source.reader.read(CHUNK)
    while longest > 0 and chunk:
        target.writer.write(chunk)
        await target.writer.drain()
        longest -= len(chunk)
        chunk = await source.reader.read(CHUNK)


async def _read_answer(web: _Stream) -> h11.Response:
    while isinstance(event := await web.receive(), h11.InformationalResponse):
        pass  # an early hint: the response follows
    if not isinstance(event, h11.Response):
        raise EOFError
    return event


def _passed_on(message: h11.Request | h11.Response, *more: Header) -> list[Header]:
    """Return the headers to pass on, over a connection for this exchange only."""
    kept = [each for each in message.headers.raw_items() if each[0].lower() not in HOP_BY_HOP]
    return [*kept, *more, CLOSE]


async def _answer(browser: _Stream, status: int, reason: str) -> None:
    """Send the browser an error response, unless a response has begun."""
    if browser.http.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    body = reason.encode()
    headers = [(b"Content-Type", b"text/plain"), (b"Content-Length", b"%d" % len(body)), CLOSE]
    response = h11.Response(status_code=status, headers=headers)
    await browser.send(response, h11.Data(data=body), h11.EndOfMessage())
