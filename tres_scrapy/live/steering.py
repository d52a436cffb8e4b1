"""What the live page can ask of a crawl: pause, resume, stop, add a seed, change MAX."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from typing import Final

from tres_scrapy.config.limit import Cap
from tres_scrapy.url.public_address import may_be_public

RUNNING, PAUSED, ENDING = "running", "paused", "ending"
LONGEST: Final = 8_000  # characters of an input

logger = logging.getLogger(__name__)


class ControlError(RuntimeError):
    """Says in one line why a request to a crawl is refused and what to do."""


class Steering(ABC):
    """Steers a crawl; each method returns a sentence that says what it did.

    Raise ControlError if it cannot be done.
    """

    @property
    @abstractmethod
    def state(self) -> str:
        """RUNNING, PAUSED or ENDING."""

    @property
    @abstractmethod
    def cap(self) -> Cap | None:
        """MAX, None without one."""

    def pause(self) -> str:
        """Send no more requests; open requests are finished."""
        self._require(RUNNING)
        self._pause()
        return _logged("Paused: no new requests are sent; open requests are finished")

    def resume(self) -> str:
        """Send requests again."""
        self._require(PAUSED)
        self._resume()
        return _logged("Resumed")

    def stop(self) -> str:
        """End the crawl as Ctrl-C does."""
        self._require(RUNNING, PAUSED)
        self._stop()
        return _logged("Stopping: open requests are finished and files are written")

    def add_seed(self, text: str) -> str:
        """Fetch seeds next; `text` is as in seed=, without @FILE."""
        self._require(RUNNING, PAUSED)
        if _short(text).lstrip().startswith("@"):
            raise ControlError("A file of seeds (@FILE) is read only at the start of a crawl")
        return _logged(f"Next: {self._add_seeds(text)}")

    def change_max(self, text: str) -> str:
        """Change MAX, the pages per domain, from the next choice on: 10, 5_2 or none."""
        self._require(RUNNING, PAUSED)
        try:
            cap = Cap.parse(_short(text))
        except ValueError as error:
            raise ControlError(f"MAX {text!r} {error}") from None
        more = self._change_cap(cap)
        return _logged(f"MAX is {'none' if cap is None else cap} from now on{more}")

    def distrust(self, text: str) -> str:
        """Fetch nothing more of a site, and of the sites found only through it."""
        self._require(RUNNING, PAUSED)
        site = _short(text).strip().lower()
        more = self._distrust(site)
        return _logged(
            f"Nothing more of {site}{more} is fetched. To take out its pages, once the crawl has "
            f"ended: tres distrust {site} RUN"
        )

    def _require(self, *states: str) -> None:
        if self.state not in states:
            raise ControlError(f"The crawl is {self.state}")

    @abstractmethod
    def _pause(self) -> None: ...

    @abstractmethod
    def _resume(self) -> None: ...

    @abstractmethod
    def _stop(self) -> None: ...

    @abstractmethod
    def _add_seeds(self, text: str) -> str:
        """Return which seeds were added, and which were not."""

    @abstractmethod
    def _change_cap(self, cap: Cap | None) -> str:
        """Return what else has changed."""

    @abstractmethod
    def _distrust(self, site: str) -> str:
        """Return what else is not fetched; raise ControlError if no page of a site was fetched."""


def require_public(host: str) -> None:
    """Raise ControlError unless a host may be on the public internet."""
    if not may_be_public(host):
        raise ControlError(
            f"{host} is not on the public internet; to allow it, start the crawl with "
            "private_addresses=1"
        )


def _short(text: str) -> str:
    if len(text) > LONGEST:
        raise ControlError(f"Too long: {LONGEST:,} characters at most")
    return text


def _logged(what: str) -> str:
    """Log what was done, and return it as a sentence."""
    logger.info("Live page: %s", what)
    return f"{what}."
