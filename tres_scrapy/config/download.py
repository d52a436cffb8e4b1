"""Which hosts are left alone while pages are downloaded."""

from __future__ import annotations

from dataclasses import dataclass

from tres_scrapy.config.declaration import setting
from tres_scrapy.config.parser import flag, number, whole


@dataclass(frozen=True)
class DownloadOptions:
    """What protects hosts from the crawl, and the crawl from what links lead to."""

    max_crawl_delay: float = setting(
        number(0, 86400), 30.0, "seconds; a host whose robots.txt asks for more is left alone"
    )
    max_unreachable: int = setting(
        whole(0), 50, "hosts in a row that cannot be reached until the crawl stops; 0: any number"
    )
    private_addresses: bool = setting(
        flag, False, "whether links may lead to this machine, its network and files"
    )
