"""Options of one shard of a crawl on many machines; `tres cluster` sets them."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import whole


@dataclass(frozen=True)
class ShardOptions:
    """Which part of a crawl this process does."""

    number: int = setting(
        whole(0, 9_999), 0, "number of this shard; set by `tres cluster`", name="shard"
    )
    count: int = setting(
        whole(0, 10_000),
        0,
        "number of shards of the crawl, 0 without `tres cluster`, which sets it",
        name="shards",
    )
