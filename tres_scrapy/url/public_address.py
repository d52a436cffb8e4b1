"""Addresses that a link may lead to: the public internet, by IANA's special-purpose lists."""

from __future__ import annotations

import socket
from ipaddress import (
    IPv4Address,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final

from tres_scrapy.url.canonical import HOST

# Our own list: that of Python's `is_global` differs between its versions.
SPECIAL: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of a carrier; a cloud's metadata
            "127.0.0.0/8",
            "168.63.129.16/32",  # the virtual host of a cloud, its metadata
            "169.254.0.0/16",  # link-local; the metadata of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",  # documentation, as two more
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved and broadcast
            "2001::/23",  # protocols, Teredo's tunnels among them
            "2001:db8::/32",  # documentation, as the next but one
            "2002::/16",  # 6to4, which hides an IPv4 address
            "3fff::/20",
        ),
    )
)
UNICAST: Final = IPv6Network("2000::/3")  # all that is routed of IPv6
EMBEDDED: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))  # mapped, NAT64
# names that never lie on the public internet (RFC 6761, 6762, 8375; .internal)
LOCAL_DOMAINS: Final = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address belongs to a host of the public internet."""
    if isinstance(address, IPv6Address):
        if any(address in network for network in EMBEDDED):
            address = IPv4Address(address.packed[-4:])
        elif address not in UNICAST:
            return False
    return not any(address in network for network in SPECIAL)


def literal(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, in any notation that resolvers and browsers read.

    IPv4 may come in one to four parts, decimal, octal or hexadecimal: 127.1, 0x7f000001.
    """
    host = host.rstrip(".")
    try:
        return ip_address(host) if ":" in host else IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def may_be_public(host: str) -> bool:
    """Return whether a host's name alone does not already say that it is not public."""
    if HOST.fullmatch(host) is None:
        return False
    if (address := literal(host)) is not None:
        return is_public(address)
    name = host.rstrip(".")
    return "." in name and not name.endswith(LOCAL_DOMAINS)
