"""The TRES_SURFACE_* settings of `scrapy crawl surface`."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import Group, setting
from tres_scrapy.config.option import Options
from tres_scrapy.config.parser import flag, number, whole


@dataclass(frozen=True)
class SurfaceOptions(Options):
    """What a surface crawl is told beside the options of every crawl.

    A field `name` is the setting TRES_SURFACE_NAME and the argument `-a surface_name=`.
    """

    prefix = "TRES_SURFACE_"
    group = Group.SURFACE

    queries: int = setting(whole(1), 100, "queries to a site at most")
    min_yield: float = setting(
        number(0, 1000),
        1.0,
        "new records a query, the mean of ten, below which a site is left",
    )
    post: bool = setting(flag, False, "whether a search box may be asked by POST")
    follow: bool = setting(
        flag, True, "whether records join the frontier; 0: their links are the items, unread"
    )
