from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.url.public_address import is_public, literal, may_be_public


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111"])
@pytest.mark.parametrize("form", ["{}", "::ffff:{}", "64:ff9b::{}"])
def test_hosts_of_the_internet_are_public(address: str, form: str) -> None:
    if ":" not in address or form == "{}":
        assert is_public(ip_address(form.format(address)))


@pytest.mark.parametrize("form", ["{}", "::ffff:{}", "64:ff9b::{}"])
@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",  # noqa: S104 - nothing is bound to it
        "10.1.2.3",
        "100.64.0.1",
        "100.100.100.200",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.192",
        "192.168.1.1",
        "198.18.0.1",
        "203.0.113.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
    ],
)
def test_special_ipv4_is_private_in_ipv6(address: str, form: str) -> None:
    assert not is_public(ip_address(form.format(address)))


@pytest.mark.parametrize(
    "address",
    [
        "::",
        "::1",
        "::127.0.0.1",
        "64:ff9b:1::1",
        "100::1",
        "2001::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "3fff::1",
        "fc00::1",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
    ],
)
def test_special_ipv6_addresses_are_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@given(st.ip_addresses())
def test_python_private_is_not_public(address: IPv4Address | IPv6Address) -> None:
    if not address.is_global:
        assert not is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "017700000001",
        "0177.1",
    ],
)
def test_ipv4_is_read_in_every_notation(host: str) -> None:
    assert literal(host) == IPv4Address("127.0.0.1")
    assert not may_be_public(host)


@pytest.mark.parametrize("host", ["::1", "::ffff:7f00:1", "::ffff:127.0.0.1", "fe80::1", "::"])
def test_an_ipv6_address_needs_no_resolver(host: str) -> None:
    assert literal(host) == IPv6Address(host)
    assert not may_be_public(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        "localhost",
        "localhost.",
        "a.localhost",
        "localhost.localdomain",
        "printer.local",
        "metadata.google.internal",
        "metadata.google.internal.",
        "nas.home.arpa",
        "intranet",
        "%31%32%37.0.0.1",
        "fe80::1%25eth0",
        "a b.org",
    ],
)
def test_some_names_are_never_public(host: str) -> None:
    assert not may_be_public(host)


@pytest.mark.parametrize(
    "host", ["example.org", "example.org.", "a.test", "xn--caf-dma.fr", "local.org", "8.8.8.8"]
)
def test_other_names_may_be(host: str) -> None:
    assert may_be_public(host)
