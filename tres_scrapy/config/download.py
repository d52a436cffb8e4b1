"""Options of politeness and safety: which hosts the crawl does not fetch from."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, number


@dataclass(frozen=True)
class DownloadOptions:
    """Options that protect hosts from the crawl, and this machine from dangerous links."""

    max_crawl_delay: float = setting(
        number(0, 86400),
        30.0,
        "seconds; hosts whose robots.txt asks for a longer delay are skipped",
    )
    address_delay: bool = setting(
        flag, True, "keep the delay between all hosts of one IP address; 0: for each host alone"
    )
    private_addresses: bool = setting(
        flag, False, "allow links to this machine, its private network and its files"
    )
