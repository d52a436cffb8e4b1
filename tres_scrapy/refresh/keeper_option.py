"""The options of a refresh run, without Scrapy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

DAY: Final = 86_400.0


@dataclass(frozen=True)
class KeeperOptions:
    """How the keeper chooses and judges pages; times in seconds."""

    budget: int
    horizon: float | None = None  # None: the requests are made at once
    policy: str = "static"
    min_age: float = 60.0
    max_age: float = 30 * DAY
    jitter: float = 0.1
    grace: int = 3  # 404 or 410 answers in a row until a page counts as gone
    minor: int = 12  # lanes of 256 in which two texts may differ and still count as the same
    minor_is_change: bool = False
    retry: float = 3_600.0  # wait after a failure; doubles with each further failure
    seed: int = 0
    follow: bool = False  # whether items list the links that are new on a page
