"""Options for watching a crawl: record, report, progress lines and live page."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import Group, setting
from tres_scrapy.config.parser import flag, number, port


@dataclass(frozen=True)
class WatchOptions:
    """What a crawl shows while it runs and writes down for later."""

    record: bool = setting(flag, True, "record the run in a file", see="report.md")
    report: bool = setting(flag, True, "write an HTML report when the crawl ends; needs the record")
    progress_interval: float = setting(number(0, 3600), 10.0, "seconds between progress lines")
    progress_line: bool = setting(
        flag, True, "in a terminal, show one live line instead of progress lines"
    )
    dashboard: int | None = setting(
        port,
        None,
        "port of the live page on this machine; 1: any free port",
        group=Group.EVERYDAY,
        see="live.md",
    )
