"""How the slots are divided among domains, new hosts and slow hosts."""

import numpy as np
import pytest

from tres_scrapy.crawl.allotment import FADES, SLOW, Allotment
from tres_scrapy.crawl.slot import HostSlots, Slot
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

SLOTS = 8
HOSTS = 20


class Crawl:
    """Samples on HOSTS hosts, requests under way, and the allotment of SLOTS."""

    def __init__(self, known=(), slots=SLOTS, most_new=2.0):
        self.store, self.now = SampleStore(DomainLedger()), 0.0
        urls = [f"http://h{n}.test/" for n in range(HOSTS)]
        actions = np.zeros((HOSTS, 3), dtype=np.float32)
        self.store.add(NO_PARENT, Outlinks(urls, [""] * HOSTS, actions))
        for host in known:
            self.store.hosts.mark_known(host)
        names = self.store.hosts.names
        self.open = HostSlots(names, lambda name: Slot(name, [], 1, 0.0), lambda row: True)
        self.allotment = Allotment(self.store, self.open, slots, 1, most_new)

    def send(self, *hosts):
        for host in hosts:
            self.open.sent(host, host, self.now)

    def takes(self, host, seconds):
        self.allotment.note_page(host, seconds)

    def has_room(self):
        return self.allotment.has_room_for_new(self.now)

    def full(self, busy=()):
        return sorted(self.allotment.full_hosts(busy, self.now))


def test_slow_hosts_share_a_quarter():
    crawl = Crawl(known=range(HOSTS))
    for host in (1, 2, 3):
        crawl.takes(host, 28.0)
    crawl.send(1)
    assert crawl.full() == []
    crawl.send(2)
    assert crawl.full() == [1, 2, 3]
    assert crawl.full(busy=range(4, HOSTS)) == [1, 2, 3], "host 0 waits"
    assert crawl.full(busy=[0, *range(4, HOSTS)]) == [], "no other host waits"


def test_request_that_waits_is_slow_before_it_ends():
    crawl = Crawl(known=range(HOSTS))
    crawl.takes(3, 28.0)
    crawl.send(1, 2)
    assert crawl.full() == []
    crawl.now = SLOW + 1
    assert crawl.full() == [3]


def test_host_that_becomes_fast_is_not_slow():
    crawl = Crawl(known=range(HOSTS))
    crawl.takes(1, 28.0)
    crawl.send(1, 2)
    crawl.takes(2, 9.0)
    assert crawl.full() == [1, 2]
    for _ in range(5):
        crawl.takes(1, 0.1)
    assert crawl.full() == []


def test_single_slot_knows_no_slow_hosts():
    crawl = Crawl(known=range(HOSTS), slots=1)
    crawl.takes(1, 28.0)
    crawl.send(1)
    assert crawl.full() == []


def test_new_hosts_share_a_quarter():
    crawl = Crawl()
    crawl.send(0)
    assert crawl.has_room()
    crawl.send(1)
    assert not crawl.has_room()


def test_slow_new_hosts_do_not_hold_back_others():
    crawl = Crawl()
    crawl.send(0, 1)
    crawl.now = SLOW + 1
    assert crawl.has_room()
    crawl.send(2, 3)
    assert not crawl.has_room()


@pytest.mark.parametrize(("fast", "most"), [(0, 6), (1, 6), (2, 4), (6, 4)])
def test_slow_and_new_hosts_leave_what_others_need(fast, most):
    crawl = Crawl(known=range(fast), slots=SLOTS)
    crawl.send(*range(fast))
    crawl.has_room()
    for host in range(fast):
        crawl.open.left(host)
    held = 0
    while crawl.has_room():
        crawl.send(10 + held)
        held += 1
        crawl.now += SLOW / 100 + (SLOW if held % 2 == 0 else 0)
        crawl.send(*range(fast))
        crawl.has_room()
        for host in range(fast):
            crawl.open.left(host)
    assert held == most


def test_need_is_forgotten():
    crawl = Crawl(known=range(6))
    crawl.send(*range(6))
    crawl.has_room()
    for host in range(6):
        crawl.open.left(host)
    crawl.send(10, 11, 12, 13)
    crawl.now = SLOW + 1
    assert not crawl.has_room()
    crawl.now += 3 * FADES
    assert crawl.has_room()


def test_hosts_of_a_spider_of_ones_own_may_all_be_new():
    crawl = Crawl(most_new=float(SLOTS))
    crawl.send(*range(SLOTS - 1))
    crawl.now = SLOW + 1
    assert crawl.has_room()
