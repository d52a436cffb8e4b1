"""The live page of a crawl in shards, on the machine of its driver, and what it can ask for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from socket import AF_INET, socket
from threading import Event, Thread
from time import monotonic, sleep
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from tres_scrapy.cluster.coordinator import GONE, Overview
from tres_scrapy.cluster.message import Status
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import seeds
from tres_scrapy.crawl.pace import Pace
from tres_scrapy.extensions.dashboard import ANSWERS, FAREWELL, SENDING, WATCHED
from tres_scrapy.extensions.ending import IN_WORDS
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.resource import LivePage, site
from tres_scrapy.live.steering import (
    ENDING,
    PAUSED,
    RUNNING,
    ControlError,
    Steering,
    require_public,
)
from tres_scrapy.live.token import PageAccess
from tres_scrapy.live.view import View

FAILURES: Final = "failures/"
NOTED: Final = "Noted for a later training, `tres train --answers`, in"

logger = logging.getLogger(__name__)


class ClusterState:
    """The numbers of the live page: sums over all shards, and a row for each.

    `show` is called with each new state of the crawl, everything else in the page's thread.
    """

    def __init__(self, config: Config, shards: int) -> None:
        self._fixed = {"topic": config.topic, "policy": config.policy}
        self._cap = "" if config.max_per_domain is None else str(config.max_per_domain)
        self._shards = shards
        self._overview = Overview({}, {}, config.pages, "", "")
        self._pace: Pace | None = None
        self._started = monotonic()
        self._asked = -WATCHED  # when a page last asked
        self._end: dict[str, Any] | None = None
        self._told = Event()
        self.control: ClusterControl | None = None

    @property
    def ends(self) -> bool:
        """Whether the crawl ends."""
        return bool(self._overview.finish)

    def show(self, overview: Overview) -> None:
        """Take the state of the crawl."""
        now = monotonic()
        if overview.is_complete:
            self._pace = self._pace or Pace(overview.pages, now)
            self._pace.note(overview.pages, now)
        self._overview = overview

    def __call__(self) -> dict[str, Any]:
        """Return the numbers by name."""
        overview, now, control = self._overview, monotonic(), self.control
        assert control is not None
        self._asked = now
        if self._end is not None:
            self._told.set()
        statuses = overview.statuses.values()
        pages, relevant = overview.pages, overview.sum("relevant_pages")
        pace = self._pace or Pace(pages, now)
        return self._fixed | {
            "status": control.state,
            "offline": False,
            "end": self._end,
            "pages": pages,
            "limit": overview.total,
            "relevant": relevant,
            "harvest": relevant / max(1, pages),
            "domains": overview.sum("relevant_domains"),
            "frontier": overview.sum("frontier_size"),
            "leaves": overview.sum("leaves"),
            "phase": f"trees of {self._shards} shards",
            "failures": sum(map(_failures, statuses)),
            "under_way": overview.sum("under_way"),
            "rate": pace.recent,
            "left": pace.left(overview.total),
            "elapsed": now - self._started,
            "max": control.cap or self._cap or None,
            "shards": [self._row(shard) for shard in range(self._shards)],
        }

    def tell_end(self, reason: str, files: Sequence[str]) -> None:
        """Wait until an open page has asked once more, for why the crawl ended and what it left."""
        self._end = {"reason": IN_WORDS.get(reason, reason), "files": list(files)}
        if monotonic() - self._asked < WATCHED and self._told.wait(FAREWELL):
            sleep(SENDING)

    def _row(self, shard: int) -> dict[str, Any]:
        status, age = self._overview.statuses.get(shard), self._overview.ages.get(shard)
        if status is None:
            return {"shard": shard, "state": "starting"}
        figures = status.figures
        return {
            "shard": shard,
            "state": _state_of(status, age),
            "pages": status.pages,
            "harvest": float(figures.get("relevant_pages", 0)) / max(1, status.pages),
            "domains": figures.get("relevant_domains", 0),
            "frontier": figures.get("frontier_size", 0),
            "q": status.value,
            "failures": _failures(status),
            "outbox": figures.get("outbox", 0),
            "age": age,
        }


class ClusterPage:
    """The live page, with a reactor in a thread of its own."""

    def __init__(
        self, config: Config, shards: int, record: Path, commander: Commander, listening: socket
    ) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        self._reactor: Any = reactor
        self._socket, self._port = listening, None
        self.state = ClusterState(config, shards)
        only_public = not config.download.private_addresses
        control = ClusterControl(commander, lambda: self.state.ends, only_public=only_public)
        self.state.control = control
        view = View(record, Answering(record.with_suffix(ANSWERS), NOTED))
        access = PageAccess()
        self._page = LivePage(access, control, view, self.state, self._reactor)
        logger.info("Live page: %s", access.address(listening.getsockname()[1]))
        self._reactor.callWhenRunning(self._serve)
        self._thread = Thread(target=self._run, name="live-page-server", daemon=True)
        self._thread.start()

    def close(self, reason: str, files: Sequence[str]) -> None:
        """Tell an open page why the crawl has ended, and end."""
        self.state.tell_end(reason, files)
        self._reactor.callFromThread(self._stop)
        self._thread.join(FAREWELL)
        self._page.close()

    def _run(self) -> None:
        self._reactor.run(installSignalHandlers=False)

    def _serve(self) -> None:
        factory = site(self._page)
        self._port = self._reactor.adoptStreamPort(self._socket.fileno(), AF_INET, factory)
        self._socket.close()

    def _stop(self) -> None:
        if self._port is not None:
            self._port.stopListening()
        self._reactor.stop()


def _failures(status: Status) -> int:
    counts = [float(n) for name, n in status.figures.items() if name.startswith(FAILURES)]
    return round(sum(counts))


def _state_of(status: Status, age: float | None) -> str:
    """Return what a shard does, in a word or two."""
    if age is None or age > GONE:
        return "does not report"
    if not status.ready:
        return "starting"
    return "idle" if status.idle else "running"


class Commander(Protocol):
    """Passes commands on to all shards, without waiting for them."""

    def command(self, name: str, value: str = "") -> None:
        """Pass a command on, by the name of a method of `Steering`."""

    def stop(self) -> None:
        """End the crawl as Ctrl-C does."""


class ClusterControl(Steering):
    """Steers a crawl in shards; a shard that is away obeys when it is back.

    `ends` says whether the crawl ends, `only_public` whether seeds must be on the public internet.
    """

    def __init__(
        self, commander: Commander, ends: Callable[[], bool], *, only_public: bool = True
    ) -> None:
        self._commander = commander
        self._ends = ends
        self._only_public = only_public
        self._paused = self._stopped = False
        self.cap = ""  # MAX as it was changed, "" if it was not

    @property
    def state(self) -> str:
        """RUNNING, PAUSED or ENDING."""
        if self._stopped or self._ends():
            return ENDING
        return PAUSED if self._paused else RUNNING

    def _pause(self) -> None:
        self._paused = True
        self._commander.command("pause")

    def _resume(self) -> None:
        self._paused = False
        self._commander.command("resume")

    def _stop(self) -> None:
        self._stopped = True
        self._commander.stop()

    def _add_seeds(self, text: str) -> str:
        """Have the owner of each seed's domain fetch it next; it says in its log if it cannot."""
        try:
            urls = seeds(text)
        except ValueError as error:
            raise ControlError(f"A seed {error}") from None
        for host in {urlsplit(url).hostname or "" for url in urls} if self._only_public else ():
            require_public(host)
        self._commander.command("add_seed", ",".join(urls))
        return ", ".join(urls)

    def _change_cap(self, cap: Cap | None) -> str:
        """Set MAX in each shard: one number, or none."""
        if cap is not None and cap.first != cap.last:
            raise ControlError(f"MAX {cap}: a crawl in shards needs one number, or none")
        self.cap = "none" if cap is None else str(cap)
        self._commander.command("change_max", self.cap)
        return ""
