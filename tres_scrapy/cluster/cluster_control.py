"""Control a running crawl in shards: pause, resume, stop, add a seed, change MAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlsplit

from tres_scrapy.config.cap import Cap
from tres_scrapy.config.parser import seeds
from tres_scrapy.live.steering import (
    ENDING,
    PAUSED,
    RUNNING,
    ControlError,
    Steering,
    require_public,
)


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
