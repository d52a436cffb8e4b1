"""Honest sites and an attacker's on loopback, and a crawl of both."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

PROJECT: Final = Path(__file__).parents[2]
LINKS: Final = 12  # of a page
SLOW: Final = 28.0  # seconds in which a slow host sends a page
ENDS: Final = 150.0  # seconds that a crawl may take after Ctrl-C
CRAWL_DELAY: Final = 30
TEXT = "a recipe of onions, butter and soup, chopped and baked with flour in the oven " * 8
LATEST: Final = 600.0  # seconds for which an answer hangs


class Attack(NamedTuple):
    """Hosts of an attacker, to which pages link; their names say what they do.

    `refusing` hosts answer for `after` seconds, `silent` ones never, `slow` ones take SLOW seconds,
    `patient` ones ask for CRAWL_DELAY seconds between fetches.
    """

    honest: tuple[str, ...]
    hostile: tuple[str, ...] = ()
    share: float = 0.0  # of the links
    after: float = 0.0  # seconds
    settings: tuple[str, ...] = ()


@dataclass
class Outcome:
    """The results of a crawl: pages served, seconds, and what the crawl said of itself."""

    pages: Counter[str] = field(default_factory=Counter)  # by host
    seconds_to_stop: float = 0.0
    stall: float = 0.0
    outages: int = 0
    status: int | None = None  # of the process, None if it had to be killed
    items: int = 0  # lines of the output; a torn line raises ValueError

    def served(self, hosts: tuple[str, ...]) -> int:
        """Return the number of pages that these hosts have served."""
        return sum(self.pages[host] for host in hosts)


class Sites:
    """Serves all hosts of an attack on one port of all loopback addresses."""

    def __init__(self, attack: Attack) -> None:
        self.pages: Counter[str] = Counter()
        self.port = 0
        self._attack = attack
        self._began: float | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()

    async def _start(self) -> None:
        server = await asyncio.start_server(self._serve, "0.0.0.0", 0, backlog=512)  # noqa: S104
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                path, host = line.split()[1].decode(), ""
                while (row := await reader.readline()).strip():
                    if row.lower().startswith(b"host:"):
                        host = row.split(b":")[1].strip().decode()
                await self._answer(host, path, writer)
        except (ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(self, host: str, path: str, writer: asyncio.StreamWriter) -> None:
        now = time.monotonic()
        self._began = self._began or now
        if "silent" in host:
            await asyncio.sleep(LATEST)
        if "refusing" in host and now - self._began > self._attack.after:
            raise ConnectionError
        if path == "/robots.txt":
            rules = f"User-agent: *\nCrawl-delay: {CRAWL_DELAY}\n" if "patient" in host else ""
            await _send(writer, rules, "text/plain")
        else:
            await _send(writer, self._page(), "text/html", SLOW if "slow" in host else 0.0)
            self.pages[host] += 1

    def _page(self) -> str:
        attack = self._attack
        links = ""
        for _ in range(LINKS):
            lures = attack.hostile and random.random() < attack.share
            host = random.choice(attack.hostile if lures else attack.honest)
            links += f'<a href="http://{host}:{self.port}/{random.getrandbits(40):x}">soup</a> '
        words = " ".join(random.sample(TEXT.split(), 40))
        return f"<title>Soup</title><p>{words} {random.getrandbits(60):x}</p><p>{links}</p>"


async def _send(writer: asyncio.StreamWriter, text: str, kind: str, seconds: float = 0.0) -> None:
    body = text.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode())
    pieces = 14 if seconds else 1
    size = -(-len(body) // pieces)
    for place in range(0, len(body), max(1, size)):
        writer.write(body[place : place + size])
        await writer.drain()
        await asyncio.sleep(seconds / pieces)


def crawl(
    attack: Attack, seconds: float, meanwhile: Callable[[int], None] = lambda pid: None
) -> Outcome:
    """Crawl for some seconds, then press Ctrl-C; `meanwhile` receives the process before that."""
    sites, outcome = Sites(attack), Outcome()
    with TemporaryDirectory() as folder:
        result, log = Path(folder, "result.json"), Path(folder, "log.txt")
        seed = f"http://{attack.honest[0]}:{sites.port}/0"
        arguments = ["-a", "topic=food", "-a", f"seed={seed}", "-a", f"output={folder}/out.jsonl"]
        arguments += ["-s", "TRES_CONTACT=me@example.org"]
        command = [sys.executable, "-m", "hostility.crawl", str(result), *arguments]
        environment = os.environ | {"PYTHONPATH": str(PROJECT / "benchmarks")}
        with log.open("wb") as errors:
            process = subprocess.Popen(  # noqa: S603 - our own command
                [*command, *attack.settings], cwd=PROJECT, env=environment, stderr=errors
            )
            _wait_until(lambda: bool(sites.pages), 120.0)
            meanwhile(process.pid)
            time.sleep(seconds)
            outcome.pages = sites.pages.copy()
            process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            try:
                outcome.status = process.wait(ENDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            outcome.seconds_to_stop = time.monotonic() - begun
        found: dict[str, Any] = json.loads(result.read_text()) if result.exists() else {}
        outcome.stall = found.get("stall", 0.0)
        output = Path(folder, "out.jsonl")
        lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
        outcome.items = len([json.loads(line) for line in lines])
        outcome.outages = len(re.findall("The network is gone", log.read_text(errors="replace")))
        if keep := os.environ.get("KEEP_LOG"):
            Path(keep).write_bytes(log.read_bytes())
    return outcome


def _wait_until(holds: Callable[[], bool], seconds: float) -> None:
    ends = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends:
        time.sleep(0.1)
