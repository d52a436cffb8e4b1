"""Crawl local sites of which some, or all, are away for a time; print what that costs.

    python benchmarks/outage.py

Each scenario is a crawl with the default settings but for the delay. Sites are away from the 15th
to the 90th second after the first request. `--away 20` makes the outage, the rests and Retry-After
shorter by the same factor.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from tres_scrapy.lab.webs.fault import BUSY, ERROR, OUTAGE, Fault
from tres_scrapy.lab.webs.proxy import Proxy
from tres_scrapy.lab.webs.web import HTML, TEXT, Answer, Count

PROJECT = Path(__file__).parents[1]
AWAY = 75.0  # seconds
START = 15.0
SOUP = "A recipe for soup: chop the {word} onions, simmer the vegetables in butter, bake the bread."
GONE = Fault(OUTAGE, AWAY)

FAULTS = {
    "h1.test": Fault(BUSY, 60),
    "h2.test": Fault(BUSY, 60, 503),
    "h3.test": Fault(ERROR, 0, 500),
    "h4.test": GONE,
}
SCENARIOS: dict[str, tuple[int, int, Mapping[str, Fault]]] = {  # sites, pages of each, faults
    "no outage": (8, 61, {}),
    "all eight sites away": (8, 61, {f"h{i}.test": GONE for i in range(8)}),
    "four of five sites fail": (5, 121, FAULTS),
}


class Sites:
    """A web of sites whose pages each link to two others of their site, and to all sites."""

    name, https, labelled = "sites", False, False
    seeds: tuple[str, ...] = ("http://h0.test/0",)
    notes: tuple[str, ...] = ()

    def __init__(self, hosts: int, pages: int) -> None:
        self._pages = pages
        self._links = "".join(f'<a href="http://h{i}.test/0">h{i}</a> ' for i in range(hosts))

    def answer(self, url: str) -> Answer:
        """Return a page, or 404 for robots.txt."""
        parts = urlsplit(url)
        if parts.path == "/robots.txt":
            return Answer(404, b"", TEXT, "missing")
        number = int(parts.path[1:])
        below = [n for n in (2 * number + 1, 2 * number + 2) if n < self._pages]
        more = "".join(f'<a href="/{n}">soup {n}</a> ' for n in below)
        text = SOUP.format(word=f"{parts.hostname} {number} " * 20)
        html = f"<title>{parts.path}</title><p>{text}{more}{self._links}"
        return Answer(200, html.encode(), HTML, "page", relevant=True)

    def labels(self, urls: Sequence[str]) -> list[bool]:
        """Return True for each URL."""
        return [True] * len(urls)


class Outage:
    """Faults of hosts from START on; `away` shortens them all by away / AWAY."""

    def __init__(self, faults: Mapping[str, Fault], away: float) -> None:
        self.asked = 0  # requests in the outage
        self._faults = faults
        self._scale = away / AWAY
        self._start: float | None = None

    def meet(self, url: str, now: float) -> Fault | None:
        """Return the fault of a host while it is away."""
        self._start = now if self._start is None else self._start
        fault = self._faults.get(urlsplit(url).hostname or "")
        is_away = START < (now - self._start) / self._scale < START + AWAY
        if fault is None or not is_away:
            return None
        self.asked += 1
        return fault._replace(seconds=fault.seconds * self._scale)


class Server:
    """A proxy before a web, on a loop in a thread."""

    def __init__(self, web: Sites, outage: Outage) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._proxy = Proxy(web, Count(), outage)
        self.port = self._run(self._proxy.start(0))

    def close(self) -> None:
        """Close the port."""
        self._run(self._proxy.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()


def crawl(port: int, away: float) -> tuple[int, str, float]:
    """Crawl the sites; return the exit status, the log and the seconds."""
    with tempfile.TemporaryDirectory() as directory:
        command = (
            sys.executable,
            "-m",
            "scrapy",
            "crawl",
            "tres",
            "-a",
            "topic=food",
            "-a",
            "seed=http://h0.test/0",
            "-a",
            f"output={directory}/pages.jsonl",
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
    for name, (hosts, pages, faults) in SCENARIOS.items():
        outage = Outage(faults, away)
        server = Server(Sites(hosts, pages), outage)
        status, log, seconds = crawl(server.port, away)
        server.close()
        counts = {
            stat: int((re.findall(rf"'tres/{stat}': (\d+)", log) or ["0"])[-1])
            for stat in ("pages", "hosts_given_up")
        }
        failures = sum(map(int, re.findall(r"'tres/failures/\S+': (\d+)", log)))
        figures = (counts["pages"], hosts * pages, failures, outage.asked, counts["hosts_given_up"])
        print(
            f"| {name} | {' | '.join(map(str, figures))} | {status} | {seconds:.0f} |", flush=True
        )


if __name__ == "__main__":
    main()
