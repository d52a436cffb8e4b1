"""How a crawl is watched: its record, its report, its progress and its live page."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, number, port


@dataclass(frozen=True)
class WatchOptions:
    """What a crawl tells while it runs and after."""

    record: bool = setting(flag, True, "keep a record of the run: docs/report.md")
    report: bool = setting(flag, True, "write the report of the record when the crawl ends")
    progress_interval: float = setting(number(0, 3600), 10.0, "seconds between progress lines")
    progress_line: bool = setting(
        flag, True, "whether a terminal shows one live line instead of them"
    )
    dashboard: int | None = setting(
        port, None, "live page on this machine: 1, any free port, or a port; docs/live.md"
    )
