"""The extension that lets the reactor wait by a clock that nobody sets."""

from __future__ import annotations

from time import monotonic, time
from typing import Any, Final, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.reactor import is_reactor_installed

_DIFFERENCE: Final = time() - monotonic()


def seconds() -> float:
    """Return the time of day, as it were if nobody had set the clock since the program started."""
    return _DIFFERENCE + monotonic()


class SteadyClock:
    """Gives the reactor that clock.

    Twisted reads the time of day. When that is set back by a day, the timeout of a download, or
    the answer of the thread that looks up a name, would come a day late.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not is_reactor_installed():
            raise NotConfigured
        from twisted.internet import reactor  # noqa: PLC0415 - importing it installs one

        waiting: Any = reactor
        waiting.seconds = seconds
        return cls()
