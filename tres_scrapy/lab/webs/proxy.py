"""An HTTP/1.1 forward proxy that answers from an offline web instead of the network."""

from __future__ import annotations

import asyncio
import math
import socket
import ssl
import struct
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from time import time
from urllib.parse import urlsplit

from trustme import CA

from tres_scrapy.downloader.gate import LocalServer
from tres_scrapy.lab.webs.fault import (
    BUSY,
    DNS,
    DRIP,
    ERROR,
    LENGTH,
    OUTAGE,
    RESET,
    TLS,
    Fault,
    Faults,
)
from tres_scrapy.lab.webs.web import TEXT, Answer, Count, FormWeb, LiveWeb, Web

LONGEST_HEAD = 65_536  # bytes of a request's head
PHRASED = frozenset(HTTPStatus)
BODILESS = {204, 304}
DROPS = 20  # pieces of a body that drips
MISSING = 1_000  # bytes that a wrong Content-Length promises
STATUSES = {BUSY: 429, ERROR: 503, DNS: 502}
HOW = "send a whole URL, as to a proxy: http_proxy=http://127.0.0.1:PORT"


class Proxy:
    """Serves a web on one event loop; a slow host delays its own connection only.

    Requests that meet one of the `faults` are not answered, and not counted as fetches, unless the
    answer only drips or has a wrong length.
    """

    def __init__(self, web: Web, count: Count, faults: Faults | None = None) -> None:
        self.web, self.count = web, count
        self._faults = faults
        self.live = web if isinstance(web, LiveWeb) else None
        self._server = LocalServer(self._serve, LONGEST_HEAD)

    async def start(self, port: int) -> int:
        """Listen on a local port (0: any free one) and return it; raise OSError if it is taken."""
        return await self._server.start(port)

    async def stop(self) -> None:
        """Close the port and every connection."""
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await self._exchange(reader, writer):
            pass

    async def _exchange(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, origin: str = ""
    ) -> bool:
        """Answer one request and return whether the connection stays open.

        In a tunnel to an origin, such as https://a.test, requests contain only paths.
        """
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.LimitOverrunError:
            return await _send(writer, _refusal(431, f"over {LONGEST_HEAD} bytes of head"), False)
        line, *rows = head.rstrip("\r\n").split("\r\n")
        fields = {n.strip().lower(): v.strip() for n, _, v in (row.partition(":") for row in rows)}
        method, _, rest = line.partition(" ")
        url, _, version = rest.rpartition(" ")
        length = fields.get("content-length", "0")
        if not version.startswith("HTTP/1.") or not length.isdecimal():
            return await _send(writer, _refusal(400, f"bad request {line[:80]!r}"), False)
        body = await reader.readexactly(int(length))
        wish = (fields.get("connection", "") + fields.get("proxy-connection", "")).lower()
        stay = "close" not in wish and (version != "HTTP/1.0" or "keep-alive" in wish)
        if method == "CONNECT" and self.web.https and not origin:
            return await self._tunnel(reader, writer, url)
        form = (
            body.decode("latin-1") if method == "POST" and isinstance(self.web, FormWeb) else None
        )
        asked = method if form is None else "GET"
        if refusal := _refuse(asked, origin + url, "https" if origin else "http"):
            return await _send(writer, refusal, stay and method != "CONNECT")
        return await self._answer(writer, method, origin + url, fields, stay, form=form)

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str
    ) -> bool:
        """Answer as an https host until the connection ends."""
        try:
            certified = context(urlsplit(f"//{place}").hostname or "")
        except ValueError:
            return await _send(writer, _refusal(400, f"bad host {place[:80]!r}"), False)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        fault = self._fault(f"https://{place}", time())
        if fault is not None and fault.kind == TLS:
            self.count.by_kind[f"fault: {TLS}"] += 1
            writer.write(b"this is not TLS\r\n")
            return False
        await writer.start_tls(certified)
        while await self._exchange(reader, writer, f"https://{place.removesuffix(':443')}"):
            pass
        return False

    async def _answer(
        self,
        writer: asyncio.StreamWriter,
        method: str,
        url: str,
        fields: Mapping[str, str],
        stay: bool,
        *,
        form: str | None = None,
    ) -> bool:
        host, now = urlsplit(url).netloc.lower(), time()
        fault = self._fault(url, now)
        if fault is not None and fault.kind != TLS:
            self.count.by_kind[f"fault: {fault.kind}"] += 1
            if fault.kind not in {DRIP, LENGTH}:
                return await _fail(writer, fault, stay)
        self.count.begin(host, now)
        try:
            if form is not None and isinstance(self.web, FormWeb):
                answer = self.web.submit(url, form)
            elif self.live is not None:
                answer = self.live.respond(url, fields)
            else:
                answer = self.web.answer(url)
            self.count.add(url, answer, now)
            if answer.delay:
                await asyncio.sleep(answer.delay)
            return await _send(writer, answer, stay, empty=method == "HEAD", fault=fault)
        finally:
            self.count.end(host)

    def _fault(self, url: str, now: float) -> Fault | None:
        return None if self._faults is None else self._faults.meet(url, now)


def _refuse(method: str, url: str, scheme: str) -> Answer | None:
    """Return the answer to a request that no web can serve, None if the request is valid."""
    if method == "CONNECT":
        return _refusal(501, f"CONNECT {url}: this web has no https, use http URLs")
    if method not in ("GET", "HEAD"):
        return _refusal(405, f"{method!r} is not served here, only GET and HEAD")
    try:
        parts = urlsplit(url)
    except ValueError:
        return _refusal(400, f"bad URL {url[:80]!r}")
    if parts.scheme != scheme or not parts.hostname:
        return _refusal(400, f"bad target {url[:80]!r}: {HOW}")
    return None


def _refusal(status: int, reason: str) -> Answer:
    return Answer(status, f"{reason}\n".encode(), TEXT, "error")


async def _fail(writer: asyncio.StreamWriter, fault: Fault, stay: bool) -> bool:
    """Do not answer, or answer that the host cannot."""
    if fault.kind in STATUSES:
        wish = (("Retry-After", str(math.ceil(fault.seconds))),) if fault.kind == BUSY else ()
        status = fault.status or STATUSES[fault.kind]
        return await _send(writer, Answer(status, b"", (*TEXT, *wish), fault.kind), stay)
    assert fault.kind in {OUTAGE, RESET}
    if fault.kind == RESET:
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    return False


async def _send(
    writer: asyncio.StreamWriter,
    answer: Answer,
    stay: bool,
    *,
    empty: bool = False,
    fault: Fault | None = None,
) -> bool:
    kind = None if fault is None else fault.kind
    stay = stay and kind != LENGTH
    phrase = HTTPStatus(answer.status).phrase if answer.status in PHRASED else ""
    empty = empty or answer.status in BODILESS
    head = [f"HTTP/1.1 {answer.status} {phrase}"]
    head += [f"{name}: {value}" for name, value in answer.headers]
    head.append(f"Content-Length: {len(answer.body) + MISSING * (kind == LENGTH)}")
    head.append(f"Connection: {'keep-alive' if stay else 'close'}")
    start = "\r\n".join([*head, "", ""]).encode("latin-1", "replace")
    body = b"" if empty else answer.body
    if fault is not None and kind == DRIP:
        writer.write(start)
        size = math.ceil(len(body) / DROPS)
        for place in range(0, len(body), max(1, size)):
            writer.write(body[place : place + size])
            await writer.drain()  # raises if the client has gone
            await asyncio.sleep(fault.seconds / DROPS)
    else:
        writer.write(start + body)
    await writer.drain()
    return stay


AUTHORITY = CA()  # known to this process only
UNNAMED = "unnamed.invalid"


@lru_cache(maxsize=1024)
def context(host: str) -> ssl.SSLContext:
    """Return the TLS context of a server that answers for a host."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        certificate = AUTHORITY.issue_cert(host)
    except ValueError:  # not a valid IDNA name, such as one with an underscore
        certificate = AUTHORITY.issue_cert(UNNAMED)
    certificate.configure_cert(made)
    return made
