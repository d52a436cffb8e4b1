"""The live page of a crawl in shards, on the machine of its driver, and what it can ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from socket import socket
from threading import Thread
from time import sleep
from typing import Any
from urllib.parse import urlsplit

from tres_scrapy.cluster.driver import Driver
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import seeds
from tres_scrapy.extensions.ending import IN_WORDS
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.resource import LivePage
from tres_scrapy.live.state import Monitor
from tres_scrapy.live.steering import (
    ENDING,
    PAUSED,
    RUNNING,
    ControlError,
    Steering,
    require_public,
)
from tres_scrapy.live.token import PageAccess
from tres_scrapy.live.view import FAREWELL, TICK, PageState, View


class ClusterPage:
    """The live page, with a reactor in a thread of its own."""

    def __init__(
        self,
        config: Config,
        monitor: Monitor,
        record: Path,
        control: ClusterControl,
        listener: socket,
    ) -> None:
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        self._reactor: Any = reactor
        self._state = PageState(config, control, lambda: monitor)
        view = View(record, Answering.beside(record))
        self._page = LivePage(PageAccess(), control, view, self._state, reactor)
        self._reactor.callWhenRunning(self._page.serve, listener)
        self._thread = Thread(target=self._run, name="live-page-server", daemon=True)
        self._thread.start()

    def close(self, reason: str, files: Sequence[Path]) -> None:
        """Tell an open page why the crawl has ended, and end."""
        self._state.end(IN_WORDS.get(reason, reason), files)
        while not self._state.is_told:
            sleep(TICK)
        self._reactor.callFromThread(self._stop)
        self._thread.join(FAREWELL)
        self._page.close()

    def _run(self) -> None:
        self._reactor.run(installSignalHandlers=False)

    def _stop(self) -> None:
        self._page.stop()
        self._reactor.stop()


class ClusterControl(Steering):
    """Steers a crawl in shards; a shard that is away obeys when it is back.

    `ends` says whether the crawl ends.
    """

    def __init__(self, driver: Driver, ends: Callable[[], bool], config: Config) -> None:
        self._driver = driver
        self._ends = ends
        self._only_public = not config.download.private_addresses
        self._paused = self._stopped = False
        self._cap = config.max_per_domain

    @property
    def state(self) -> str:
        """RUNNING, PAUSED or ENDING."""
        if self._stopped or self._ends():
            return ENDING
        return PAUSED if self._paused else RUNNING

    @property
    def cap(self) -> Cap | None:
        """MAX, None without one."""
        return self._cap

    def _pause(self) -> None:
        self._paused = True
        self._driver.command("pause")

    def _resume(self) -> None:
        self._paused = False
        self._driver.command("resume")

    def _stop(self) -> None:
        self._stopped = True
        self._driver.stop()

    def _add_seeds(self, text: str) -> str:
        """Have the owner of each seed's domain fetch it next; it says in its log if it cannot."""
        try:
            urls = seeds(text)
        except ValueError as error:
            raise ControlError(f"A seed {error}") from None
        for host in {urlsplit(url).hostname or "" for url in urls} if self._only_public else ():
            require_public(host)
        self._driver.command("add_seed", ",".join(urls))
        return ", ".join(urls)

    def _change_cap(self, cap: Cap | None) -> str:
        """Set MAX in each shard: one number, or none."""
        if cap is not None and cap.first != cap.last:
            raise ControlError(f"MAX {cap}: a crawl in shards needs one number, or none")
        self._cap = cap
        self._driver.command("change_max", "none" if cap is None else str(cap))
        return ""

    def _distrust(self, site: str) -> str:
        raise ControlError(
            "No shard knows all links of a site: stop the crawl, and resume it with "
            f"denied_domains={site}"
        )
