"""The resolver of names: its threads end with the process, whatever they wait for."""

from __future__ import annotations

from functools import partial
from threading import Thread
from typing import Any, Final, Self

from scrapy.crawler import Crawler
from scrapy.resolver import CachingThreadedResolver
from twisted.python.threadpool import ThreadPool

LOOKUPS: Final = "REACTOR_THREADPOOL_MAXSIZE"  # the setting: names looked up at once


class DaemonPool(ThreadPool):
    """A pool of threads that the process does not wait for."""

    threadFactory = partial(Thread, daemon=True)  # type: ignore[assignment]  # noqa: N815


class _OwnPool:
    """A reactor with another pool of threads."""

    def __init__(self, reactor: Any, pool: ThreadPool) -> None:
        self._reactor = reactor
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reactor, name)

    def getThreadPool(self) -> ThreadPool:  # noqa: N802 - Twisted's name
        return self._pool


class PromptResolver(CachingThreadedResolver):
    """Scrapy's resolver, which leaves lookups alone when the process ends.

    The system looks for a name for up to a minute, and cannot be interrupted. The reactor waits for
    the threads of its own pool.
    """

    def __init__(self, reactor: Any, cache_size: int, timeout: float, lookups: int = 20) -> None:
        pool = DaemonPool(0, lookups, "names")
        pool.start()
        super().__init__(_OwnPool(reactor, pool), cache_size, timeout)  # type: ignore[arg-type]

    @classmethod
    def from_crawler(cls, crawler: Crawler, reactor: Any) -> Self:
        settings = crawler.settings
        size = settings.getint("DNSCACHE_SIZE") if settings.getbool("DNSCACHE_ENABLED") else 0
        return cls(reactor, size, settings.getfloat("DNS_TIMEOUT"), settings.getint(LOOKUPS))
