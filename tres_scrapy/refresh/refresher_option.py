"""How a collection is kept fresh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import duration, flag, number, one_of, whole
from tres_scrapy.refresh.registry import POLICIES

DAY: Final = 86_400.0  # seconds


@dataclass(frozen=True)
class RefresherOptions:
    """What the collection is kept by; times in seconds."""

    budget: int = 0
    horizon: float | None = setting(
        duration, None, "time over which they are spread, such as 6h; unset: made at once"
    )
    policy: str = setting(one_of(*POLICIES), "static", "who chooses the next page")
    min_age: float = setting(duration, 60.0, "a page is not asked for again before this time")
    max_age: float = setting(
        duration, 30 * 86_400.0, "a page is asked for first when its copy is this old"
    )
    jitter: float = setting(number(0, 1), 0.1, "share of an interval that it is longer or shorter")
    grace: int = setting(whole(1), 3, "answers 404 or 410 in a row until a page is gone")
    retry: float = setting(duration, 3_600.0, "time after a failure, twice as long after each more")
    minor: int = setting(
        whole(0, 256), 12, "lanes of 256 in which a text may differ and be the same"
    )
    minor_is_change: bool = setting(flag, False, "whether such differences count as changes")
    seed: int = 0
    follow: bool = False  # whether links that were not there before are told
