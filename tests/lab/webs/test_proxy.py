from __future__ import annotations

import asyncio
import gc
import io
import json
import signal
import ssl
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from archived import record
from conftest import PROJECT, command, interpreter
from preloaded import Process

from tres_scrapy.extensions.offline_web import in_words
from tres_scrapy.lab.webs.fault import FaultSchedule
from tres_scrapy.lab.webs.proxy import Proxy
from tres_scrapy.lab.webs.web import HTML, Answer, Count

PAGE = Answer(200, b"<html>ok</html>", HTML, "page", True, "pure")


class TinyWeb:
    """Every host answers with one page; the host slow.test waits for ever."""

    name = "tiny"
    seeds: tuple[str, ...] = ("http://a.test/",)
    https = False
    notes: tuple[str, ...] = ()

    def answer(self, url: str) -> Answer:
        if url.startswith("http://slow.test"):
            return Answer(200, b"late", HTML, "page", delay=3600)
        return PAGE

    def labels(self, urls: Sequence[str]) -> list[bool]:
        return [True] * len(urls)


class Client:
    """Speaks raw HTTP to a proxy on one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, head: str, *, empty: bool = False) -> tuple[int, bytes]:
        """Send the head of a request and return status and body."""
        self.writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n")
        answer = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        length = int(answer.split("Content-Length: ")[1].split("\r\n")[0])
        return int(answer.split()[1]), b"" if empty else await self.reader.readexactly(length)


def talk(conversation: Callable[[Client, Client, Proxy], Awaitable[None]]) -> Count:
    """Run a test over two connections with a proxy of the tiny web."""

    async def hold() -> None:
        port = await proxy.start(0)
        clients = [Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in "12"]
        await conversation(clients[0], clients[1], proxy)
        await proxy.stop()
        for client in clients:
            client.writer.close()
            await client.writer.wait_closed()

    proxy = Proxy(TinyWeb(), Count())
    asyncio.run(hold())
    return proxy.count


def test_connection_serves_many_requests() -> None:
    async def conversation(client: Client, _: Client, __: Proxy) -> None:
        for path in ("1", "2"):
            assert await client.ask(f"GET http://a.test/{path} HTTP/1.1") == (200, PAGE.body)

    assert talk(conversation).pages == 2


def test_slow_host_delays_only_itself() -> None:
    async def conversation(client: Client, other: Client, proxy: Proxy) -> None:
        waiting = asyncio.ensure_future(client.ask("GET http://slow.test/ HTTP/1.1"))
        while not proxy.count.open["slow.test"]:
            await asyncio.sleep(0)
        assert (await other.ask("GET http://a.test/ HTTP/1.1"))[0] == 200
        assert not waiting.done()
        waiting.cancel()

    talk(conversation)


@pytest.mark.parametrize(
    ("head", "status", "words"),
    [
        ("CONNECT a.test:443 HTTP/1.1", 501, b"no https"),
        ("GET /path HTTP/1.1\nHost: a.test", 400, b"http_proxy="),
        ("GET http://[a/ HTTP/1.1", 400, b"bad URL"),
        ("POST http://a.test/ HTTP/1.1\nContent-Length: 0", 405, b"GET and HEAD"),
        ("nonsense", 400, b"bad request"),
        ("GET http://a.test/ HTTP/1.1\nContent-Length: many", 400, b"bad request"),
    ],
)
def test_bad_request_names_its_reason(head: str, status: int, words: bytes) -> None:
    async def conversation(client: Client, _: Client, proxy: Proxy) -> None:
        got, body = await client.ask(head)
        assert got == status
        assert words in body

    assert talk(conversation).fetches == 0


def test_an_endless_head_is_refused() -> None:
    async def conversation(client: Client, _: Client, proxy: Proxy) -> None:
        assert (await client.ask("GET http://a.test/ HTTP/1.1\nX: " + "x" * 70_000))[0] == 431

    talk(conversation)


def test_a_head_request_gets_no_body() -> None:
    async def conversation(client: Client, _: Client, proxy: Proxy) -> None:
        await client.ask("HEAD http://a.test/ HTTP/1.1", empty=True)
        assert await client.ask("GET http://a.test/ HTTP/1.1") == (200, PAGE.body)

    talk(conversation)


@pytest.mark.parametrize(
    "head", ["GET http://a.test/ HTTP/1.0", "GET http://a.test/ HTTP/1.1\nConnection: close"]
)
def test_connection_closes_on_request(head: str) -> None:
    async def conversation(client: Client, _: Client, proxy: Proxy) -> None:
        await client.ask(head)
        assert await client.reader.read() == b""

    talk(conversation)


def test_count_uses_true_labels() -> None:
    count = Count()
    count.add("http://www.a.test/1", PAGE)
    count.add("http://blog.a.test/2", PAGE)
    count.add("http://b.test/1", Answer(200, b"", HTML, "page", False))
    count.add("http://b.test/2", Answer(200, b"", HTML, "trap", True))
    for kind in ("soft404", "redirect", "robots", "search", "other", "missing", "error"):
        count.add(f"http://c.test/{kind}", Answer(200, b"", (), kind, True))
    assert (count.fetches, count.pages, count.relevant, count.harvest) == (11, 4, 2, 0.5)
    assert count.domains == {"a.test"}
    assert count.summary()["by_kind"] == {**dict.fromkeys(count.by_kind, 1), "page": 3}


def test_repeated_page_counts_once() -> None:
    log = io.StringIO()
    count = Count(log)
    for _ in "12":
        count.add("http://a.test/", PAGE, 1.5)
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    assert (count.fetches, count.pages, count.relevant) == (2, 1, 1)
    assert rows[0] == {
        "time": 1.5, "url": "http://a.test/", "status": 200, "kind": "page", "relevant": True,
        "site_kind": "pure", "duplicate": False,
    }  # fmt: skip
    assert rows[1]["duplicate"]


def test_count_keeps_least_polite_host() -> None:
    count = Count()
    for host, time in (("a", 0.0), ("b", 1.0), ("b", 1.5), ("a", 3.0)):
        count.begin(host, time)
    count.end("b")
    count.begin("b", 9.0)
    assert count.max_simultaneous == {"a": 2, "b": 2}
    assert count.min_gap == {"a": 3.0, "b": 0.5}
    assert count.summary()["min_gap"] == 0.5


def test_count_in_words_agrees_with_numbers() -> None:
    summary = {"pages": 1, "relevant": 1, "harvest": 1.0, "domains": 1}
    said = "By the web's true labels: 1 page, 1 relevant, harvest rate 1.0000, 1 relevant domain"
    assert in_words(summary, pages=1) == said
    assert in_words(summary, pages=2) == f"{said}, since this start"


def test_empty_count_harvests_nothing() -> None:
    assert Count().summary()["harvest"] == 0.0


def server(*arguments: str) -> list[str]:
    return [str(interpreter().path), "-m", "tres_scrapy.cli.main", "web", "--json", *arguments]


def start(*arguments: str) -> Process:
    return Process(
        server(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, cwd=PROJECT,
    )  # fmt: skip


@pytest.mark.slow
def test_server_reports_port_and_count(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with start("synthetic", "--topic", "food", "--seed", "1", "--log", str(log)) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        first = json.loads(server.stdout.readline())
        asyncio.run(_fetch(first["port"], first["seeds"][0]))
        server.stdin.close()
        last = json.loads(server.stdout.read())
        assert server.wait() == 0
    assert (last["fetches"], last["pages"], last["relevant"], last["harvest"]) == (1, 1, 1, 1.0)
    assert json.loads(log.read_text(encoding="utf-8"))["url"] == first["seeds"][0]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_with_count(number: signal.Signals) -> None:
    with start("synthetic") as server:
        assert server.stdout is not None
        server.stdout.readline()
        server.send_signal(number)
        assert json.loads(server.stdout.read())["fetches"] == 0
        assert server.wait() == 0


async def _fetch(port: int, url: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert (await Client(reader, writer).ask(f"GET {url} HTTP/1.1"))[0] == 200
    writer.close()
    await writer.wait_closed()


@pytest.mark.slow
def test_taken_port_exits_with_1() -> None:
    with start("synthetic") as first:
        assert first.stdout is not None
        port = json.loads(first.stdout.readline())["port"]
        second = subprocess.run(
            server("synthetic", "--port", str(port)),
            capture_output=True, text=True, cwd=PROJECT, check=False,
        )  # fmt: skip
        first.terminate()
    assert second.returncode == 1
    assert second.stderr.count("\n") == 1
    assert f"port {port}" in second.stderr
    assert "in use" in second.stderr


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["corpus"], "--data FILE"),
        (["corpus", "--data", "none.jsonl"], "none.jsonl"),
        (["recorded"], "--data FILE, a WARC"),
        (["recorded", "--data", "none.warc"], "no WARC file at 'none.warc'"),
        (["synthetic", "--topic", "opera"], "food, sports, hardware"),
        (["synthetic", "--port", "70000"], "'--port': 70000"),
        (["synthetic", "--log", "no/such/folder/log"], "no/such/folder/log"),
    ],
)
def test_bad_argument_is_one_line(arguments: list[str], words: str) -> None:
    ended = subprocess.run(
        server(*arguments), capture_output=True, text=True, cwd=PROJECT, check=False
    )
    assert ended.returncode in {1, 2}  # 2: the command line is wrong
    assert ended.stderr.count("\n") == 1
    assert words in ended.stderr


@pytest.mark.parametrize(
    ("args", "topic", "words"),
    [([], "food", "one web"), (["wide"], "food", "'wide'"), (["synthetic"], "opera", "'opera'")],
)
def test_wrong_web_is_one_line(
    args: list[str], topic: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        command("web", *args, "--topic", topic)
    said = capsys.readouterr().err or str(end.value)
    assert words in said
    assert said.strip().count("\n") == 0


class SecureWeb(TinyWeb):
    """A web whose answers contain the requested URL."""

    https = True

    def answer(self, url: str) -> Answer:
        return Answer(200, url.encode(), HTML, "page")


def test_secure_urls_use_a_tunnel() -> None:
    async def hold() -> list[bytes]:
        port = await proxy.start(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        await writer.start_tls(trusting, server_hostname="a.test")
        names = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        client = Client(reader, writer)
        bodies = [(await client.ask(f"GET /{n} HTTP/1.1\nHost: a.test"))[1] for n in "12"]
        bodies.append((await client.ask("CONNECT b.test:443 HTTP/1.1"))[1])
        writer.close()
        await proxy.stop()
        return [*bodies, names]

    proxy = Proxy(SecureWeb(), Count())
    first, second, nested, certificate = asyncio.run(hold())
    assert (first, second) == (b"https://a.test/1", b"https://a.test/2")
    assert b"no https" in nested
    assert b"a.test" in certificate
    assert proxy.count.by_kind["page"] == 2


def test_handshake_fails_by_schedule() -> None:
    async def hold() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", await proxy.start(0))
        writer.write(b"CONNECT a.test:443 HTTP/1.1\r\n\r\n")
        said = await reader.read()
        writer.close()
        await proxy.stop()
        return said

    proxy = Proxy(SecureWeb(), Count(), FaultSchedule.parse("tls=1:9"))
    assert asyncio.run(hold()).endswith(b"\r\n\r\nthis is not TLS\r\n")
    assert proxy.count.by_kind["fault: tls"] == 1


@pytest.mark.parametrize(
    "place", ["127.0.0.1:443", "[::1]:443", "nowhere", "a" * 300, "é:443", ":"]
)
def test_odd_tunnel_ends_cleanly(place: str) -> None:
    async def hold() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
        port = await proxy.start(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"CONNECT {place} HTTP/1.1\r\n\r\nno TLS at all\r\n\r\n".encode())
        writer.write_eof()
        await reader.read()
        writer.close()
        await proxy.stop()
        gc.collect()  # the loop reports a failed task when the task is garbage-collected

    faults: list[object] = []
    proxy = Proxy(SecureWeb(), Count())
    asyncio.run(hold())
    assert not faults
    assert proxy.count.fetches == 0


@pytest.mark.parametrize("status", [204, 299, 304, 999])
def test_any_status_is_framed(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = Answer(status, b"body", HTML, "other")
    monkeypatch.setattr(TinyWeb, "answer", lambda self, url: answer)

    async def conversation(client: Client, _: Client, proxy: Proxy) -> None:
        for _ in "12":
            bodiless = status in {204, 304}
            got, _ = await client.ask("GET http://a.test/ HTTP/1.1", empty=bodiless)
            assert got == status

    talk(conversation)


@pytest.mark.slow
def test_recording_server_names_its_content(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(record("https://a.test/"))
    with start("recorded", "--data", str(tmp_path / "a.warc")) as server:
        assert server.stdout is not None
        first = json.loads(server.stdout.readline())
        server.terminate()
    assert first["seeds"] == ["https://a.test/"]
    assert first["notes"][0] == "1 recorded URL, 1 page of 1 host"
