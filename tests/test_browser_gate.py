"""The gate without a browser: the bytes that it passes on, and its refusals."""

import asyncio
from contextlib import suppress

import pytest

from tres_scrapy.downloader.gate import BrowserGate, GateRule, Parent

OK = b"HTTP/1.1 200 OK\r\n"
GET = b"GET http://a.test:PORT/x?y HTTP/1.1\r\nHost: a.test\r\nProxy-Connection: keep-alive\r\n\r\n"
CONNECT = b"CONNECT a.test:PORT HTTP/1.1\r\nHost: a.test:PORT\r\n\r\n"


def talk(asked, answer, *, resolve=("127.0.0.1",), parent=None, until=b"\r\n\r\n", **rule):
    """Send bytes through a gate to a server that answers once; return what each of them read."""

    async def hold():
        received = []

        async def serve(reader, writer):
            received.append(await reader.readuntil(until))
            writer.write(answer)
            await writer.drain()
            writer.close()

        async def addresses(host):
            return resolve

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        way = parent and Parent("http", "127.0.0.1", port, parent)
        gate = BrowserGate(GateRule(addresses, **{"private": True} | rule), way)
        reader, writer = await asyncio.open_connection("127.0.0.1", await gate.start())
        writer.write(asked.replace(b"PORT", str(port).encode()))
        said = b""
        with suppress(ConnectionError):  # the gate may leave before it has read everything
            said = await reader.read()
        writer.close()
        await gate.stop()
        server.close()
        return said, b"".join(received).replace(str(port).encode(), b"PORT"), gate.refused

    return asyncio.run(asyncio.wait_for(hold(), 60))


def test_request_goes_on_over_one_connection():
    said, received, _ = talk(GET, OK + b"Content-Length: 2\r\nKeep-Alive: 5\r\nX-Y: z\r\n\r\nhi")
    assert received == b"GET /x?y HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
    assert said == OK + b"Content-Length: 2\r\nX-Y: z\r\nConnection: close\r\n\r\nhi"


def test_body_of_request_goes_on():
    head = GET.removesuffix(b"\r\n").replace(b"GET", b"POST") + b"Content-Length: 4\r\n\r\n"
    said, received, _ = talk(head + b"soup", OK + b"Content-Length: 0\r\n\r\n", until=b"soup")
    assert received.startswith(b"POST /x?y ")
    assert said.startswith(OK)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", b"2\r\nhi\r\n0\r\n\r\n"),
        (OK + b"\r\nhi", b"2\r\nhi\r\n0\r\n\r\n"),
        (
            b"HTTP/1.1 103 Hint\r\nLink: x\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nhi",
            b"hi",
        ),
        (b"HTTP/1.0 200 OK\r\n\r\nhi", b"2\r\nhi\r\n0\r\n\r\n"),
    ],
)
def test_answer_ends_where_it_ends(answer, body):
    said, _, _ = talk(GET, answer)
    assert said.startswith(OK)
    assert said.partition(b"\r\n\r\n")[2] == body


def test_tunnel_carries_any_bytes():
    said, received, _ = talk(CONNECT + b"\x16\x03 hello\r\n\r\n", b"\x00any\xff")
    assert received == b"\x16\x03 hello\r\n\r\n"
    assert said.partition(b"\r\n\r\n")[2] == b"\x00any\xff"


@pytest.mark.parametrize("asked", [GET, CONNECT + b"\r\n\r\n"])
def test_answer_is_cut_when_it_is_too_long(asked):
    said, _, _ = talk(asked, OK + b"\r\n" + b"x" * 1_000_000, longest=1000)
    assert len(said) < 500_000


@pytest.mark.parametrize(
    ("asked", "resolve"),
    [
        (GET, ("127.0.0.1",)),
        (GET, ("10.0.0.1", "::1")),
        (CONNECT, ("192.168.0.1",)),
        (GET.replace(b"//a.test", b"//localhost"), ("1.1.1.1",)),
        (GET.replace(b"//a.test", b"//[::1]"), ("1.1.1.1",)),
        (CONNECT.replace(b"a.test", b"127.1"), ("1.1.1.1",)),
        (GET.replace(b"http:", b"ftp:"), ("1.1.1.1",)),
        (GET.replace(b"http://a.test:PORT", b""), ("1.1.1.1",)),
    ],
)
def test_private_places_and_other_schemes_are_refused(asked, resolve):
    said, received, refused = talk(asked, OK + b"\r\n", resolve=resolve, private=False)
    assert said.startswith(b"HTTP/1.1 403 ")
    assert not received
    assert refused.total() == 1


@pytest.mark.parametrize(
    "asked",
    [
        b"nonsense\r\n\r\n",
        GET.replace(b"Host: a.test", b"Host : a.test"),
        GET.replace(b"Host: a.test", b"Content-Length: 1\r\nContent-Length: 2"),
        GET.replace(b"//a.test", b"//[a"),
    ],
)
def test_what_is_not_http_is_not_passed_on(asked):
    said, received, _ = talk(asked, OK + b"\r\n")
    assert said.startswith(b"HTTP/1.1 502 ")
    assert not received


def test_endless_head_is_not_passed_on():
    _, received, _ = talk(GET.replace(b"Proxy-", b"X: " + 400_000 * b"y" + b"\r\nProxy-"), OK)
    assert not received


def test_second_request_is_not_passed_on():
    _, received, _ = talk(GET + GET.replace(b"/x?y", b"/second"), OK + b"\r\n")
    assert b"second" not in received


def test_parent_gets_whole_urls_and_the_credentials():
    _, received, _ = talk(GET, OK + b"\r\n", parent="Basic eHk=")
    assert received.startswith(b"GET http://a.test:PORT/x?y HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic eHk=\r\n" in received


@pytest.mark.parametrize("status", [b"200", b"407"])
def test_parent_makes_the_tunnel_or_not(status):
    said, received, _ = talk(
        CONNECT, b"HTTP/1.1 " + status + b" So\r\n\r\nearly", parent="Basic eHk="
    )
    assert received.startswith(b"CONNECT a.test:PORT HTTP/1.1\r\nHost: a.test:PORT\r\n")
    assert b"Proxy-Authorization: Basic eHk=\r\n" in received
    assert said.endswith(b"early") if status == b"200" else said.startswith(b"HTTP/1.1 502 ")
