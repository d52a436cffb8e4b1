from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)  # the networks are small: a second thread costs more than it gives
settings.register_profile("untimed", deadline=None)  # other work may slow any example
settings.load_profile("untimed")

PROJECT = Path(__file__).parents[1]


@dataclass
class Pages:
    """A tiny web: what each URL answers, the requests it got and the files that were put there.

    After `lasts` requests, if it is set, it hangs up on whoever asks. Who asks for a URL of
    `silent` waits until `over`.
    """

    answers: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    requests: list[tuple[float, str]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    port: int = 0
    lasts: int | None = None
    silent: set[str] = field(default_factory=set)
    over: threading.Event = field(default_factory=threading.Event)

    def add(self, url, html="", status=200, **headers):
        headers = {"Content-Type": "text/html; charset=utf-8"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        self.answers[url] = (status, headers, html.encode())

    def fetched(self):
        """The URLs that were asked for in order, robots.txt left out."""
        return [url for _, url in self.requests if not url.endswith("/robots.txt")]


@pytest.fixture
def pages() -> Iterator[Pages]:
    """Serve a Pages web as an HTTP proxy."""
    with served() as web:
        yield web


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the usual five, a connection too many is tried a second later


@contextmanager
def served() -> Iterator[Pages]:
    web = Pages()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            web.requests.append((monotonic(), self.path))
            if web.lasts is not None and len(web.requests) > web.lasts:
                self.close_connection = True
                return
            if self.path in web.silent:
                web.over.wait()
                self.close_connection = True
                return
            status, headers, body = web.answers.get(self.path, (404, {}, b""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_PUT(self):
            web.files[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    web.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield web
    web.over.set()
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def running(*arguments, **options) -> Iterator[subprocess.Popen[str]]:
    """Run `scrapy` beside a test, and no longer than it, however it ends."""
    command = [sys.executable, "-m", "scrapy", *map(str, arguments)]
    with subprocess.Popen(command, cwd=PROJECT, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="session")
def scrapy():
    """Run `scrapy` in the project as a user would."""

    def run(*arguments, pages=None, project=PROJECT, program=("-m", "scrapy"), timeout=300):
        environment = dict(os.environ)
        if pages is not None:
            environment["http_proxy"] = f"http://127.0.0.1:{pages.port}"
        return subprocess.run(
            [sys.executable, *program, *map(str, arguments)],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    return run
