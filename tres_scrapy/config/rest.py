"""Options for hosts that fail: how long they rest, and when they are given up."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import number, whole


@dataclass(frozen=True)
class RestOptions:
    """How a host that fails rests, and what happens when no host answers any more."""

    first: float = setting(
        number(0.001, 3600),
        15.0,
        "seconds that a host rests after a 429, a 5xx or no answer; doubled while it fails",
        name="rest",
    )
    longest: float = setting(
        number(0.001, 86400),
        3600.0,
        "most seconds of a rest, also of a Retry-After",
        name="max_rest",
    )
    most: int = setting(
        whole(1, 100),
        6,
        "give up a host that fails after this many rests in a row; half as many if it has never "
        "answered",
        name="max_rests",
    )
    unreachable: int = setting(
        whole(0),
        10,
        "check the network after this many hosts in a row have failed; 0: never",
        name="max_unreachable",
    )
    outage: float = setting(
        number(0, 604800),
        1800.0,
        "seconds to wait for a network that is gone before the crawl ends",
        name="max_outage",
    )
    new_hosts: float = setting(
        number(0, 1),
        0.25,
        "share of CONCURRENT_REQUESTS that hosts which have never answered may take; a spider of "
        "your own may take all",
        name="new_host_share",
    )
