"""Serves an offline web to any crawler that honours http_proxy, and counts its fetches."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

from tres_scrapy.config.guest import load
from tres_scrapy.config.offline import web_kind
from tres_scrapy.lab.webs.corpus import CorpusWeb
from tres_scrapy.lab.webs.fault import DEFAULT, OF_HOSTS, OF_REQUESTS, RULE, Faults
from tres_scrapy.lab.webs.proxy import Proxy
from tres_scrapy.lab.webs.recorded import RecordedWeb
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.web import Count, Web
from tres_scrapy.url.message import TresError

DATA = "corpus web: a file of JSON lines, plain or .xz; recorded web: a WARC file or a folder"
FAULTS = (
    f"faults to inject, by the random seed: {RULE}, or `default` for {DEFAULT}. SHARE of the hosts "
    f"at a time: {'; '.join(f'{kind}: {said}' for kind, said in OF_HOSTS.items())}. SHARE of the "
    f"requests: {'; '.join(f'{kind}: {said}' for kind, said in OF_REQUESTS.items())}"
)
LABELS = "recorded web: a file of relevant URLs, or of JSON lines with url and relevant"


def open_web(
    kind: str,
    topic: str,
    seed: int,
    data: Path | None,
    labels: Path | None = None,
) -> Web:
    """Return a web by its kind, or one of your own; raise TresError or OSError if that fails.

    `topic` is one topic or several, joined by "+".
    """
    try:
        web_kind(kind)
        if ":" in kind:
            web: Web = load(kind)(topic, seed=seed)
            return web
    except (AttributeError, ImportError, ValueError) as error:
        raise TresError(f"web={kind!r}: {error}") from None
    if kind == "synthetic":
        return SyntheticWeb(topic, seed=seed)
    if data is None:
        what = "JSON lines of linked documents" if kind == "corpus" else "a WARC file or a folder"
        raise TresError(f"a {kind} web needs --data FILE, {what}")
    return CorpusWeb(data, topic) if kind == "corpus" else RecordedWeb(data, labels)


def serve(
    web: Web,
    port: int,
    log: Path | None,
    ready: Callable[[int], None],
    faults: Faults | None = None,
) -> Count:
    """Serve a web until SIGINT, SIGTERM or the end of a piped standard input; return the count.

    Call `ready` with the port. Raise OSError if the port is taken or the log cannot be written.
    """
    with open(log, "w", buffering=1, encoding="utf-8") if log else nullcontext() as lines:
        count = Count(lines)
        asyncio.run(_serve(Proxy(web, count, faults), port, ready))
    return count


async def _serve(proxy: Proxy, port: int, ready: Callable[[int], None]) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, done.set)
    listening = await proxy.start(port)
    if sys.stdin and _is_pipe(sys.stdin.fileno()):  # None if it was closed before the start
        loop.add_reader(sys.stdin.fileno(), _read, sys.stdin.fileno(), done)
    ready(listening)
    await done.wait()
    await proxy.stop()


def _is_pipe(descriptor: int) -> bool:
    """Return whether a parent process holds the other end, unlike a terminal or /dev/null."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _read(descriptor: int, done: asyncio.Event) -> None:
    if not os.read(descriptor, 4096):
        asyncio.get_running_loop().remove_reader(descriptor)
        done.set()
