"""The extension that knows which hosts share an IP address, and so a delay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config


class SharedAddresses:
    """Gives all hosts of an address the downloader slot of the host that was asked first.

    A machine with hundreds of sites would otherwise get a request of each at once. Behind a proxy,
    which resolves names, addresses are not known.
    """

    def __init__(self) -> None:
        self._slots: dict[str, str] = {}  # by host
        self._owners: dict[str, str] = {}  # the first host, by address
        self._hosts: dict[str, list[str]] = {}  # by slot

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not Config.of(crawler.settings).download.address_delay:
            raise NotConfigured
        return cls()

    def note(self, host: str, addresses: Iterable[str]) -> None:
        """Note the addresses of a host; those of a host that is known do not count."""
        known = sorted(addresses)
        if host not in self._slots and known:
            slot = self._slots[host] = self._owners.setdefault(known[0], host)
            self._hosts.setdefault(slot, []).append(host)

    def slot_of(self, host: str) -> str:
        """Return the key of the downloader slot of a host."""
        return self._slots.get(host, host)

    def hosts_of(self, slot: str) -> list[str]:
        """Return the hosts of a slot that are known to share it."""
        return self._hosts.get(slot, [])
