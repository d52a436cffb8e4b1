"""Measures what a signature costs: `python benchmarks/identity.py [REQUESTS]`.

It prints processor time in milliseconds: of signing alone, and of a whole request to a server on
this machine, unsigned and signed in turn. Each round is a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from threading import Thread
from time import process_time
from typing import Any

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.http import Response
from twisted.web import _newclient
from twisted.web.http_headers import Headers

from tres_scrapy.downloader.handler import BoundedHandler, signed
from tres_scrapy.downloader.identity import Identity, KeyFolder

ROUNDS = 3  # of each kind
SIGNED = 5_000  # requests that are only signed


class Answer(BaseHTTPRequestHandler):
    """Answers each request with a few bytes, and refuses those that are unsigned on /signed."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with 200, or 401."""
        missing = self.path.startswith("/signed") and "Signature" not in self.headers
        self.send_response(401 if missing else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


class Asking(Spider):
    """Asks a URL many times."""

    name = "asking"
    url = ""
    count = 0
    answers = 0
    began = 0.0

    async def start(self) -> AsyncIterator[Request]:
        """Yield the requests."""
        self.began = process_time()
        for _ in range(self.count):
            yield Request(self.url, dont_filter=True)

    def parse(self, response: Response) -> None:
        """Count an answer."""
        self.answers += 1

    def closed(self, reason: str) -> None:
        """Print milliseconds a request."""
        if self.answers != self.count:
            raise RuntimeError(f"{self.answers} answers to {self.count} requests")
        print((process_time() - self.began) * 1e3 / self.count)


def ask(url: str, count: int, key: str) -> None:
    """Crawl in this process; print milliseconds a request."""
    settings = {
        "DOWNLOAD_HANDLERS": {"http": BoundedHandler},
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        **({"TRES_IDENTITY": key} if key else {}),
    }
    process = AsyncCrawlerProcess(settings)
    process.crawl(Asking, url=url, count=count)
    process.start()


def time_signing(identity: Identity) -> float:
    """Return milliseconds of one signature."""
    headers = Headers({"Host": ["example.org"], "User-Agent": ["measured"]})
    request = _newclient.Request(b"GET", b"/", headers, None)
    began = process_time()
    for _ in range(SIGNED):
        signed(request, identity)
    return (process_time() - began) * 1e3 / SIGNED


def main(count: int) -> None:
    """Print the figures."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    Thread(target=server.serve_forever, daemon=True).start()
    with TemporaryDirectory() as folder:
        key = KeyFolder(Path(folder)).add("https://crawler.example.org")
        print(f"{time_signing(Identity.read(key)):.3f} ms to sign a request")
        times: dict[str, list[float]] = {"unsigned": [], "signed": []}
        for _ in range(ROUNDS):
            for kind, given in (("unsigned", ""), ("signed", str(key))):
                url = f"http://127.0.0.1:{server.server_port}/{kind}"
                words = [sys.executable, __file__, str(count), url, given]
                done = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603 - our own
                times[kind].append(float(done.stdout))
    for kind, each in times.items():
        bounds = f"{min(each):.3f} to {max(each):.3f}"
        print(f"{median(each):.3f} ms for a whole request, {kind} ({bounds})")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        ask(sys.argv[2], int(sys.argv[1]), sys.argv[3])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
