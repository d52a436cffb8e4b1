from __future__ import annotations

import socket
import threading
from queue import Queue
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from twisted.internet.address import IPv4Address, IPv6Address

from tres_scrapy.downloader.private_address import PublicResolver
from tres_scrapy.downloader.resolver import PromptResolver

PRIVATE, PUBLIC = "127.0.0.1", "8.8.8.8"


class NameServer:
    """Answers each query with the next of its answers, as Twisted does."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def resolveHostName(self, receiver, name, portNumber=0):  # noqa: N802, N803
        receiver.resolutionBegan(None)
        for host in self.answers.pop(0):
            kind = IPv6Address if ":" in host else IPv4Address
            receiver.addressResolved(kind("TCP", host, portNumber))
        receiver.resolutionComplete()


class Receiver:
    def __init__(self):
        self.events = []

    def resolutionBegan(self, resolution):  # noqa: N802
        self.events.append("began")

    def addressResolved(self, address):  # noqa: N802
        self.events.append((address.host, address.port))

    def resolutionComplete(self):  # noqa: N802
        self.events.append("complete")


def resolved(resolver, name):
    receiver = Receiver()
    resolver.resolveHostName(receiver, name, portNumber=80)
    return receiver.events


@pytest.mark.parametrize("private", [PRIVATE, "10.0.0.1", "::1", "::ffff:127.0.0.1"])
def test_private_addresses_are_kept_back(private):
    resolver = PublicResolver(NameServer([private, PUBLIC]))
    assert resolved(resolver, "a.test") == ["began", (PUBLIC, 80), "complete"]


def test_private_answers_are_dropped():
    resolver = PublicResolver(NameServer([PUBLIC], [PRIVATE]))
    assert resolved(resolver, "a.test") == ["began", (PUBLIC, 80), "complete"]
    assert resolved(resolver, "a.test") == ["began", "complete"]


def test_trusted_host_keeps_private_addresses():
    resolver = PublicResolver(NameServer([PRIVATE], [PRIVATE]))
    resolver.trust("Proxy.test")
    assert resolved(resolver, "proxy.TEST") == ["began", (PRIVATE, 80), "complete"]
    assert resolved(resolver, "other.test") == ["began", "complete"]


def test_process_does_not_wait_for_a_lookup(monkeypatch):
    threads, calls, found = [], Queue(), []
    reactor = SimpleNamespace(
        callFromThread=lambda call, *values: calls.put((call, values)),
        callLater=lambda *values: Mock(),
    )

    def look_up(name):
        threads.append(threading.current_thread())
        return PUBLIC

    monkeypatch.setattr(socket, "gethostbyname", look_up)
    PromptResolver(reactor, 0, 20.0).getHostByName("a.test").addCallback(found.append)
    call, values = calls.get(timeout=60)
    call(*values)
    assert found == [PUBLIC]
    assert threads[0].daemon
