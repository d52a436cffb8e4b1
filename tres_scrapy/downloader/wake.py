"""Wakes Scrapy's engine, which otherwise sleeps until its heartbeat of five seconds."""

from __future__ import annotations

from scrapy.core.engine import ExecutionEngine


def wake(engine: ExecutionEngine) -> None:
    """Let the engine ask its scheduler for requests now."""
    slot = engine._slot  # the only private attribute of Scrapy that is used
    if slot is not None:
        slot.nextcall.schedule()
