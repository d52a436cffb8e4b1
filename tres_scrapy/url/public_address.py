"""Public internet addresses, by IANA's special-purpose lists: links may lead only to these."""

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

# Our own list, because Python's `is_global` differs between versions.
SPECIAL: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT; the metadata service of a cloud
            "127.0.0.0/8",
            "168.63.129.16/32",  # the metadata service of a cloud
            "169.254.0.0/16",  # link-local; the metadata service of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",  # documentation, like two below
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved and broadcast
            "2001::/23",  # protocols, such as Teredo tunnels
            "2001:db8::/32",  # documentation, like 3fff::/20
            "2002::/16",  # 6to4, which hides an IPv4 address
            "3fff::/20",
        ),
    )
)
UNICAST: Final = IPv6Network("2000::/3")  # all routed IPv6 addresses
EMBEDDED: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))  # mapped, NAT64
# names that are never on the public internet (RFC 6761, 6762, 8375; .internal)
LOCAL_DOMAINS: Final = (".localhost", ".localdomain", ".local", ".internal", ".home.arpa")


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is on the public internet."""
    if isinstance(address, IPv6Address):
        if any(address in network for network in EMBEDDED):
            address = IPv4Address(address.packed[-4:])
        elif address not in UNICAST:
            return False
    return not any(address in network for network in SPECIAL)


def literal(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host name spells, in any notation that browsers accept.

    IPv4 may have one to four parts, decimal, octal or hexadecimal: 127.1, 0x7f000001.
    """
    host = host.rstrip(".")
    try:
        return ip_address(host) if ":" in host else IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None


def may_be_public(host: str) -> bool:
    """Return whether a host may be public, judged by its name alone."""
    if HOST.fullmatch(host) is None:
        return False
    if (address := literal(host)) is not None:
        return is_public(address)
    name = host.rstrip(".")
    return "." in name and not name.endswith(LOCAL_DOMAINS)
