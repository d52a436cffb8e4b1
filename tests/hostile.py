"""A hostile web, served as an HTTP proxy; beside each trap there is an honest page.

Each trap is a host `NAME.test`, whose function yields the bytes of its answer to a path until the
crawler stops reading. Its honest page is about a dish: at `/dish`, or on another host if the trap
uses up all pages that a crawler allows a host. The hub links to the entrances of all traps, and to
the dish of a trap only if the trap returns no page.
"""

from __future__ import annotations

import gzip
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from socketserver import StreamRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

from trap import (
    DISH,
    FOODS,
    TRAPS,
    Bytes,
    ResetError,
    dish,
    endlessly,
    head,
    link,
    page,
    recipe,
    redirect,
    trap,
)

HUB = "http://hub.test/"
GIGABYTE = 2**30
CHUNK = b"x" * 2**16


@trap()
def redirect_chain(path: str) -> Bytes:
    hop = int(path.strip("/") or 0)
    yield redirect(f"/{hop + 1}" if hop < 9 else DISH)


@trap("/", DISH)
def redirect_loop(path: str) -> Bytes:
    yield redirect("/b" if path == "/a" else "/a")


@trap("/", DISH)
def redirect_itself(path: str) -> Bytes:
    yield redirect(path)


@trap("/", DISH)
def endless_redirect(path: str) -> Bytes:
    yield redirect(f"/{int(path.strip('/') or 0) + 1}")


@trap("/", DISH)
def refresh_loop(path: str) -> Bytes:
    yield page(f'<meta http-equiv=refresh content="0; url=/{int(path.strip("/") or 0) + 1}">')


@trap(DISH, *(f"/{i}" for i in range(18)))  # fewer failures than end a domain
def redirect_to_capped(path: str) -> Bytes:
    yield redirect(f"http://capped.test{path}")


@trap(dish="http://after-capped.test/dish")
def capped(path: str) -> Bytes:
    yield page(f"<p>{recipe(path)}" + link(TRAPS["capped"].dish, *(f"/{i}" for i in range(80))))


@trap(dish="http://after-calendar.test/dish")
def calendar(path: str) -> Bytes:
    month = int(path.strip("/") or 0)
    yield page(f"<p>No events.{link(f'/{month + 1}', f'/{month - 1}', TRAPS['calendar'].dish)}")


@trap(dish="http://after-dead-links.test/dish")
def dead_links(path: str) -> Bytes:
    dead = (f"/{i}" for i in range(80))
    yield page(link(*dead, TRAPS["dead-links"].dish)) if path == "/" else head(404)


@trap(dish="http://after-session.test/dish")
def session(path: str) -> Bytes:
    token = Random(path).randrange(10**9)
    sessions = (f"/?sid={token + i}" for i in range(20))
    yield page(dish("session") + link(*sessions, TRAPS["session"].dish))


@trap("/", DISH)
def gigabyte(path: str) -> Bytes:
    yield head(Content_Length=GIGABYTE)
    yield from endlessly(CHUNK)


@trap("/", DISH)
def endless_body(path: str) -> Bytes:
    yield head(Transfer_Encoding="chunked")
    yield from endlessly(b"10000\r\n" + CHUNK + b"\r\n")


@trap("/", DISH)
def endless_headers(path: str) -> Bytes:
    yield b"HTTP/1.1 200 OK\r\n"
    yield from endlessly(b"X-Trap: " + b"x" * 1_000 + b"\r\n")


@trap("/", DISH)
def gzip_bomb(path: str) -> Bytes:
    bomb = gzip.compress(bytes(100 * 2**20))
    yield page(bomb, Content_Encoding="gzip")


@trap("/", DISH)
def gzip_in_gzip(path: str) -> Bytes:
    bomb = gzip.compress(gzip.compress(bytes(100 * 2**20)))
    yield page(bomb, Content_Encoding="gzip, gzip")


@trap("/", DISH)
def empty_gzip(path: str) -> Bytes:
    yield page(gzip.compress(gzip.compress(b"") * 400_000), Content_Encoding="gzip, gzip")


@trap("/", DISH)
def broken_gzip(path: str) -> Bytes:
    yield page(b"no gzip", Content_Encoding="gzip")


@trap("/", DISH)
def slow_drip(path: str) -> Bytes:
    yield head(Content_Length=600)
    for _ in range(600):
        yield b"x"
        time.sleep(0.2)


@trap("/", DISH)
def reset_in_body(path: str) -> Bytes:
    yield head(Content_Length=10_000) + b"<p>half a"
    time.sleep(0.1)  # or the reset overtakes the headers
    raise ResetError


@trap("/", DISH)
def reset_at_once(path: str) -> Bytes:
    raise ResetError
    yield b""


@trap("/long", "/short", "/garbage")
def wrong_length(path: str) -> Bytes:
    length = {"/long": 10**6, "/short": 1, "/garbage": "many"}[path]
    yield head(Content_Length=length) + f"<p>half a page {link(DISH)}".encode()


@trap("/picture", "/nothing", "/charset", "/image", "/binary")
def wrong_type(path: str) -> Bytes:
    if path == "/picture":
        yield page(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100)
    elif path == "/nothing":
        yield b"HTTP/1.1 200 OK\r\n\r\n" + f"<html><body>{link(DISH)}".encode()
    elif path == "/charset":
        yield page(f"<html>{link(DISH)}", Content_Type="text/html; charset=klingon")
    elif path == "/image":
        yield page(f"<html>{link(DISH)}", Content_Type="image/png")
    else:
        yield page(bytes(range(256)), Content_Type="application/pdf")


@trap(dish="http://after-many-links.test/dish")
def many_links(path: str) -> Bytes:
    links = (f"/{i}" for i in range(100_000))
    yield page(link(TRAPS["many-links"].dish, *links) if path == "/" else f"<p>{recipe(path)}")


@trap()
def long_anchor(path: str) -> Bytes:
    yield page(f"<a href={DISH}>{'soup ' * 200_000}</a>")


@trap()
def deep_nesting(path: str) -> Bytes:
    yield page(link(DISH) + "<div><a href=x><table><td>" * 100_000)


@trap()
def many_attributes(path: str) -> Bytes:
    yield page(link(DISH) + f"<a {' '.join(f'a{i}=1' for i in range(50_000))} href=x>")


@trap("/invalid", "/mixed", "/utf-16")
def encodings(path: str) -> Bytes:
    html = f"<meta charset=ascii><p>crème brûlée{link(DISH)}"
    if path == "/invalid":
        yield page(b"\xff\xfe\xfa\x80" + html.encode("latin-1") + b"\xc3")
    elif path == "/mixed":
        yield page(html.encode() + html.encode("utf-16") + html.encode("cp1252"))
    else:
        yield page(html.encode("utf-16-le"), Content_Type="text/html; charset=utf-16")


@trap()
def nuls(path: str) -> Bytes:
    yield page(
        f'\0<\0p>\0<a href="/\0x">\0</a><a href="{DISH}">so\0up</a>\0'.encode() + bytes(1000)
    )


@trap()
def schemes(path: str) -> Bytes:
    if path == "/file":
        yield redirect("file:///etc/passwd")
    elif path == "/data":
        yield redirect("data:text/html,<p>soup")
    else:
        bad = ("data:text/html,<p>x", "javascript:go()", "file:///etc/passwd", "ftp://a.test/x")
        bad += ("mailto:a@b.test", "about:blank", "http://", "http://[", "//", "http://a b.test/")
        yield page(f"<p>nothing{link(*bad, '/file', '/data', DISH)}")


@trap()
def addresses(path: str) -> Bytes:
    odd = ("http://jürgens-küche.test/dish", "http://port.test:8081/dish")
    odd += ("http://user:secret@userinfo.test/dish", "HTTP://UPPER.TEST:80/dish")
    odd += ("http://port.test:99999/x", "http://port.test:0/x", "http://-.test:x/")
    yield page(f"<p>nothing{link(*odd, DISH)}")


@trap("/", "/moved", DISH)
def long_hosts(path: str) -> Bytes:
    hosts = ["".join(Random(i).choices("abcdé中文字", k=1_900)) for i in range(300)]
    if path == "/moved":
        yield head(302, Location=f"http://{hosts[0]}.test/", Content_Length=0)
    else:
        yield page(link(*(f"http://{host}.test/" for host in hosts)))


@trap()
def tracking(path: str) -> Bytes:
    sources = (f"/menu?utm_source=s{i}&utm_medium=m&fbclid={i}" for i in range(1_000))
    yield page(f"<p>{recipe(path.partition('?')[0])}{link(*sources, DISH)}")


@trap(dish="http://after-canonical.test/dish")
def canonical(path: str) -> Bytes:
    comments = " ".join(Random(path).choices(FOODS, k=60))
    html = f"<link rel=canonical href=/one>{dish('canonical')}<p>{comments}"
    yield page(html + link(TRAPS["canonical"].dish, *(f"/?view={i}" for i in range(1_000))))


@trap(dish="http://after-near-duplicates.test/dish")
def near_duplicates(path: str) -> Bytes:
    token = "".join(Random(path).choices("bcdfgh", k=8))
    html = f"{dish('near')}<p>Seen {token} times on {path}"
    yield page(html + link(TRAPS["near-duplicates"].dish, *(f"/?at={i}" for i in range(1_000))))


@trap("/", DISH)
def soft_404(path: str) -> Bytes:
    yield page(f"<title>Page not found</title><p>Sorry.{link(*(f'{path}{i}' for i in range(9)))}")


@trap(DISH)
def huge_robots(path: str) -> Bytes:
    yield head(Content_Type="text/plain") + b"User-agent: *\n"
    yield from (b"Disallow: /*%d*a*b*c$\n" % i * 5_000 for i in range(50))
    yield b"Disallow: /\n"  # a reader that gets this far may fetch nothing


@trap(DISH)
def endless_robots(path: str) -> Bytes:
    yield head(Content_Type="text/plain")
    yield from endlessly(b"Disallow: /x\n" * 5_000)


@trap(DISH, "/private")
def announced_robots(path: str) -> Bytes:
    yield head(Content_Type="text/plain", Content_Length=GIGABYTE)
    yield b"User-agent: *\nDisallow: /private\n"
    yield from endlessly(b"# nothing\n" * 5_000)


@trap(DISH)
def crowded_robots(path: str) -> Bytes:
    agents = "".join(f"User-agent: a{i}\n" for i in range(3_000))
    rules = "".join(f"Disallow: /{i}\n" for i in range(3_000))
    yield page(agents + rules + "User-agent: *\nDisallow: /private\n", Content_Type="text/plain")


@trap("/", DISH)
def slow_charset(path: str) -> Bytes:
    yield page(b"abcdefghij" * 150_000, Content_Type="text/html; charset=punycode")


@trap("/", DISH)
def nested_links(path: str) -> Bytes:
    yield page("<svg>" + "<a href=/x> " * 19_900)


@trap(DISH)
def binary_robots(path: str) -> Bytes:
    yield page(bytes(range(256)) * 1_000, Content_Type="application/octet-stream")


@trap(DISH)
def redirecting_robots(path: str) -> Bytes:
    yield redirect(path)


@trap("/", "http://after-failing-robots.test/dish", dish="http://after-failing-robots.test/dish")
def failing_robots(path: str) -> Bytes:
    yield head(500, Content_Length=4) + b"Oops"


@trap("/", "http://after-reset-robots.test/dish", dish="http://after-reset-robots.test/dish")
def resetting_robots(path: str) -> Bytes:
    raise ResetError
    yield b""


@dataclass
class Web:
    """The running proxy and its requested URLs."""

    port: int
    asked: list[str] = field(default_factory=list)


def answer(url: str) -> Bytes:
    """Yield the bytes of the answer to a URL."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    name = host.removesuffix(".test")
    path = parts.path + ("?" + parts.query if parts.query else "")
    if url in {HUB, HUB + "honest"}:
        entrances = [each for trap in TRAPS.values() for each in trap.entrances]
        dishes = [trap.dish for trap in TRAPS.values()]
        yield page(dish("hub") + link(*(entrances if url == HUB else dishes)))
    elif path == DISH:
        yield page(dish(name))
    elif name in TRAPS and (path != "/robots.txt" or name.endswith("robots")):
        yield from TRAPS[name].answer(path)
    else:
        yield head(404, Content_Length=0)


@contextmanager
def serve() -> Iterator[Web]:
    """Serve the hub and all traps until the block ends."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            try:
                _, url, _ = self.rfile.readline().decode("latin-1").split(" ")
                while self.rfile.readline().strip():
                    pass
                web.asked.append(url)
                for part in answer(url):
                    self.wfile.write(part)
            except ResetError:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            except (OSError, ValueError):  # the crawler stopped reading, or sent no request
                pass

        def finish(self) -> None:
            self.connection.close()

    class Server(ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True
        block_on_close = False
        request_queue_size = 128

        def shutdown_request(self, request: socket.socket) -> None:  # type: ignore[override]
            request.close()  # do not send a FIN: it would arrive before the reset

    with Server(("127.0.0.1", 0), Handler) as server:
        web = Web(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield web
        server.shutdown()
        thread.join()
