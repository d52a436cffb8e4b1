"""Which hosts can be sent a request now."""

import pytest

from tres_scrapy.crawl.slot import LONGEST_REST, HostSlots, Slot

NAMES = ["a.test", "b.test", "c.test"]


def available(*slots, names=NAMES):
    """Hosts with these slots, and the set of rows whose request is open."""
    by_name, rows = dict(zip(names, slots, strict=False)), set(range(9))
    slot_of = lambda name: by_name.get(name, Slot(name, [], 1, 0.0))  # noqa: E731
    return HostSlots(names, slot_of, rows.__contains__), rows


@pytest.mark.parametrize("transfers", [1, 2])
def test_full_slot_is_busy(transfers):
    hosts, _ = available(Slot("a.test", [], transfers, 0.0))
    hosts.sent(0, 0, 10.0)
    assert hosts.busy(10.0) == ({0} if transfers == 1 else set())
    hosts.sent(1, 0, 10.0)
    assert hosts.busy(10.0) == {0}
    hosts.left(0)
    hosts.left(1)
    assert not hosts.busy(10.0)


def test_delay_counts_from_the_last_request():
    hosts, _ = available(Slot("a.test", [], 1, 2.0, last=11.0))
    hosts.sent(0, 0, 10.0)
    assert hosts.next_time() == 12.0
    hosts.left(0)
    assert hosts.next_time() == 13.0
    assert (hosts.busy(12.9), hosts.busy(13.1)) == ({0}, set())
    assert hosts.next_time() is None


def test_hosts_of_a_slot_are_busy_together():
    slot = Slot("a.test", NAMES[:2], 1, 0.0)
    hosts, _ = available(slot, slot)
    hosts.sent(0, 1, 10.0)
    hosts.left(0)
    hosts.sent(1, 0, 10.0)
    assert hosts.busy(10.0) == {0, 1}


def test_closed_request_frees_its_host():
    """A page from a cache is booked, and never leaves the downloader."""
    hosts, rows = available()
    hosts.sent(3, 2, 10.0)
    assert list(hosts.open_hosts()) == [2]
    rows.remove(3)
    assert not hosts.busy(10.0)
    assert not list(hosts.open_hosts())


def test_short_rest_and_new_request_are_soon_over():
    slots = (
        Slot(name, [], 1, delay, last=0.0) for name, delay in zip(NAMES, (1, 60), strict=False)
    )
    hosts, _ = available(*slots)
    for host in range(3):
        hosts.sent(host, host, 10.0)
    assert hosts.soon_free({0, 1, 2}, 10.0) == [0, 2]
    assert hosts.soon_free({0}, 10.0 + LONGEST_REST + 1) == [0]


def test_own_delay_holds_no_neighbour():
    """A host of a shared address asks for a longer delay: the others keep that of the address."""
    address = Slot("a.test", NAMES[:2], 1, 1.0, last=10.0)
    hosts, _ = available(address._replace(own=30.0), address)
    hosts.sent(0, 0, 10.0)
    hosts.sent(1, 1, 10.0)
    hosts.left(0)
    hosts.left(1)
    assert hosts.busy(10.5) == {0, 1}
    assert hosts.busy(11.5) == {0}
    assert hosts.next_time() == 40.0
    assert hosts.soon_free({0}, 11.5) == []
    assert hosts.busy(40.5) == set()


def test_held_host_is_busy_alone():
    address = Slot("a.test", NAMES[:2], 1, 0.0)
    hosts, _ = available(address, address)
    hosts.sent(0, 0, 10.0)
    hosts.left(0)
    hosts.hold(0, 40.0)
    assert hosts.busy(10.0) == {0}
    assert hosts.next_time() == 40.0
    assert hosts.busy(41.0) == set()
