"""Control a running crawl in shards: pause, resume, stop, add a seed, change MAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol
from urllib.parse import urlsplit

from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import seeds
from tres_scrapy.extensions.control import ENDING, PAUSED, RUNNING
from tres_scrapy.live.steering import ControlError, require_state, said, short
from tres_scrapy.url.public_address import may_be_public


class Commander(Protocol):
    """Passes commands on to all shards, without waiting for them."""

    def command(self, name: str, value: str = "") -> None:
        """Pass a command on, by the name of a method of `Steering`."""

    def stop(self) -> None:
        """End the crawl as Ctrl-C does."""


class ClusterControl:
    """The `Steering` of a crawl in shards; a shard that is away obeys when it is back.

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

    def pause(self) -> str:
        """Send no more requests; open requests are finished."""
        require_state(self.state, RUNNING)
        self._paused = True
        return self._told("pause", "", "Paused: no new requests are sent; open requests finish")

    def resume(self) -> str:
        """Send requests again."""
        require_state(self.state, PAUSED)
        self._paused = False
        return self._told("resume", "", "Resumed")

    def stop(self) -> str:
        """End the crawl as Ctrl-C does."""
        require_state(self.state, RUNNING, PAUSED)
        self._stopped = True
        self._commander.stop()
        return said("Stopping: open requests are finished and files are written")

    def add_seed(self, text: str) -> str:
        """Have the owner of each seed's domain fetch it next; it says in its log if it cannot."""
        require_state(self.state, RUNNING, PAUSED)
        if short(text).lstrip().startswith("@"):
            raise ControlError("A file of seeds (@FILE) is read only at the start of a crawl")
        try:
            urls = seeds(text)
        except ValueError as error:
            raise ControlError(f"A seed {error}") from None
        for host in {urlsplit(url).hostname or "" for url in urls} if self._only_public else ():
            if not may_be_public(host):
                raise ControlError(
                    f"{host} is not on the public internet; to allow it, start the crawl with "
                    "private_addresses=1"
                )
        return self._told("add_seed", ",".join(urls), f"Next: {', '.join(urls)}")

    def change_max(self, text: str) -> str:
        """Set MAX, one number or none, from the next choice of each shard on."""
        require_state(self.state, RUNNING, PAUSED)
        try:
            cap = Cap.parse(short(text))
        except ValueError as error:
            raise ControlError(f"MAX {text!r} {error}") from None
        if cap is not None and cap.first != cap.last:
            raise ControlError(f"MAX {cap}: a crawl in shards needs one number, or none")
        self.cap = "none" if cap is None else str(cap)
        return self._told("change_max", self.cap, f"MAX is {self.cap} from now on")

    def _told(self, name: str, value: str, what: str) -> str:
        self._commander.command(name, value)
        return said(what)
