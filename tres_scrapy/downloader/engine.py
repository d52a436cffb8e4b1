"""What Scrapy's engine offers only through private attributes, and what waits for its end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, TypeVar

from scrapy import Request
from scrapy.core.engine import ExecutionEngine
from scrapy.exceptions import IgnoreRequest

SHUTDOWN: Final = "shutdown"  # the kind of a request that is not sent because the crawl ends
LAST_WAIT: Final = 15.0  # seconds that a crawl which ends waits for what is under way
LOOK: Final = 0.5  # seconds between two looks at whether it ends


def wake(engine: ExecutionEngine) -> None:
    """Make the engine ask its scheduler for requests now, not at its next heartbeat in 5 s."""
    slot = engine._slot
    if slot is not None:
        slot.nextcall.schedule()


def is_under_way(engine: ExecutionEngine, request: Request) -> bool:
    """Return whether a request is being downloaded, or its answer is with the spider."""
    slot = engine._slot
    return slot is not None and request in slot.inprogress


def requests_under_way(engine: ExecutionEngine) -> int:
    """Return the number of requests that are being downloaded or whose answer is being read.

    A redirect or retry that waits in the scheduler is not one of them.
    """
    return 0 if engine._slot is None else len(engine._slot.inprogress)


def is_closing(engine: ExecutionEngine) -> bool:
    """Return whether the crawl ends: it only waits for what is under way."""
    slot = engine._slot
    return slot is None or slot.closing is not None


class CrawlEndsError(IgnoreRequest):
    """Raised in place of a result that takes too long once the crawl has begun to end."""

    kind = SHUTDOWN


T = TypeVar("T")


async def before_end(ends: Callable[[], bool], work: Awaitable[T]) -> T:
    """Return the result of `work`; cancel it if the crawl `ends` and has waited for LAST_WAIT.

    Then raise CrawlEndsError: what was under way stays so in JOBDIR.
    """
    task, began = asyncio.ensure_future(work), 0.0
    try:
        while not (await asyncio.wait({task}, timeout=LOOK))[0]:
            if ends():
                began = began or monotonic()
                if monotonic() - began >= LAST_WAIT:
                    raise CrawlEndsError("the crawl ends")
        return task.result()
    finally:
        task.cancel()
