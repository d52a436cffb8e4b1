"""Crawl local sites of which some, or all, are away for a time; print what that costs.

    python benchmarks/outage.py

Each scenario is a crawl with the default settings but for the delay. Sites are away from the 15th
to the 90th second after the first request. `--away 20` makes the outage, the rests and Retry-After
shorter by the same factor.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

PROJECT = Path(__file__).parents[1]
AWAY = 75.0  # seconds
START = 15.0
TEXT = "A recipe for soup: chop the {word} onions, simmer the vegetables in butter, bake the bread."
Fault = Callable[[str], tuple[int, str] | None]  # by host: a status (0: none) and its Retry-After

FAULTS = {"h1.test": (429, "60"), "h2.test": (503, "60"), "h3.test": (500, ""), "h4.test": (0, "")}
SCENARIOS: dict[str, tuple[int, int, Fault]] = {  # sites, pages of each, what is wrong
    "no outage": (8, 61, lambda host: None),
    "all eight sites away": (8, 61, lambda host: (0, "")),
    "four of five sites fail": (5, 121, FAULTS.get),
}


class Sites:
    """The sites of a scenario behind one proxy; each page links to two others of its site."""

    def __init__(self, hosts: int, pages: int, fault: Fault, away: float) -> None:
        self.start: float | None = None
        self.asked = 0  # requests in the outage
        sites = self
        links = "".join(f'<a href="http://h{i}.test/0">h{i}</a> ' for i in range(hosts))

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host, path = urlsplit(self.path).hostname or "", urlsplit(self.path).path
                sites.start = sites.start or monotonic()
                is_away = (
                    START * away / AWAY < monotonic() - sites.start < (START + AWAY) * away / AWAY
                )
                if is_away and (found := fault(host)):
                    sites.asked += 1
                    self.fail(*found)
                elif path == "/robots.txt":
                    self.send(404, "")
                else:
                    number = int(path[1:])
                    below = [n for n in (2 * number + 1, 2 * number + 2) if n < pages]
                    more = "".join(f'<a href="/{n}">soup {n}</a> ' for n in below)
                    text = TEXT.format(word=f"{host} {number} " * 20)
                    self.send(200, f"<title>{path}</title><p>{text}{more}{links}")

            def fail(self, status: int, wish: str) -> None:
                if not status:
                    self.close_connection = True
                elif wish:
                    self.send(status, "", Retry_After=str(max(1, round(int(wish) * away / AWAY))))
                else:
                    self.send(status, "")

            def send(self, status: int, html: str, **headers: str) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(html.encode())))
                self.end_headers()
                self.wfile.write(html.encode())

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._server.server_close()


def crawl(port: int, away: float) -> tuple[int, str, float]:
    """Crawl the sites; return the exit status, the log and the seconds."""
    with tempfile.TemporaryDirectory() as directory:
        command = (
            *(sys.executable, "-m", "scrapy", "crawl", "tres", "-a", "topic=food"),
            *("-a", "seed=http://h0.test/0", "-a", f"output={directory}/pages.jsonl"),
            *("-a", f"rest={15 * away / AWAY}", "-s", "DOWNLOAD_DELAY=0.5"),
        )
        environment = os.environ | {"http_proxy": f"http://127.0.0.1:{port}"}
        begun = monotonic()
        process = subprocess.run(  # noqa: S603 - our own command
            command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False
        )
        return process.returncode, process.stderr, monotonic() - begun


def main() -> None:
    """Print a row for each scenario."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--away", type=float, default=AWAY, help="seconds of the outage")
    away = parser.parse_args().away
    columns = "pages | of | other failures | requests in the outage | hosts given up | exit"
    print(f"| scenario | {columns} | seconds |\n|---|---|---|---|---|---|---|---|", flush=True)
    for name, (hosts, pages, fault) in SCENARIOS.items():
        sites = Sites(hosts, pages, fault, away)
        status, log, seconds = crawl(sites.port, away)
        sites.close()
        counts = {
            stat: int((re.findall(rf"'tres/{stat}': (\d+)", log) or ["0"])[-1])
            for stat in ("pages", "hosts_given_up")
        }
        failures = sum(map(int, re.findall(r"'tres/failures/\S+': (\d+)", log)))
        figures = (counts["pages"], hosts * pages, failures, sites.asked, counts["hosts_given_up"])
        print(
            f"| {name} | {' | '.join(map(str, figures))} | {status} | {seconds:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
