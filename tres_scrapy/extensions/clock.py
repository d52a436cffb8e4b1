"""The extension that gives the reactor a clock that changes of the system time do not affect."""

from __future__ import annotations

from time import monotonic, time
from typing import Any, Final, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.reactor import is_reactor_installed

_DIFFERENCE: Final = time() - monotonic()


def seconds() -> float:
    """Return the time in seconds, without changes to the system clock since the program began."""
    return _DIFFERENCE + monotonic()


class SteadyClock:
    """Makes the reactor use `seconds` as its clock.

    Twisted uses the system time. If that is set back by a day, download timeouts and name lookups
    come a day late.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not is_reactor_installed():
            raise NotConfigured
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        waiting: Any = reactor
        waiting.seconds = seconds
        return cls()
