"""Wake Scrapy's engine, which otherwise sleeps until its next heartbeat, every five seconds."""

from __future__ import annotations

from scrapy.core.engine import ExecutionEngine


def wake(engine: ExecutionEngine) -> None:
    """Make the engine ask its scheduler for requests now."""
    slot = engine._slot  # a private attribute: Scrapy has no public way
    if slot is not None:
        slot.nextcall.schedule()
