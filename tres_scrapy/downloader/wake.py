"""What Scrapy's engine tells and takes only through a private attribute."""

from __future__ import annotations

from scrapy import Request
from scrapy.core.engine import ExecutionEngine


def wake(engine: ExecutionEngine) -> None:
    """Make the engine ask its scheduler for requests now, not at its next heartbeat in 5 s."""
    slot = engine._slot
    if slot is not None:
        slot.nextcall.schedule()


def requests_under_way(engine: ExecutionEngine) -> int:
    """Return the number of requests that are being downloaded or whose answer is being read.

    A redirect or retry that waits in the scheduler is none of them.
    """
    return 0 if engine._slot is None else len(engine._slot.inprogress)


def is_under_way(engine: ExecutionEngine, request: Request) -> bool:
    """Return whether a request is being downloaded, or its answer is with the spider."""
    slot = engine._slot
    return slot is not None and request in slot.inprogress


def is_closing(engine: ExecutionEngine) -> bool:
    """Return whether the crawl ends: it only waits for what is under way."""
    slot = engine._slot
    return slot is None or slot.closing is not None
