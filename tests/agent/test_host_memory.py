from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.agent import host_memory
from tres_scrapy.agent.host_memory import FADE, HostMemory

HOSTS = np.arange(4, dtype=np.int32)
VALUES = st.sampled_from([0.0, 0.25, 1.0])
# Fetches: the host, its reward and lead, and a page one of whose links proves relevant.
FETCHES = st.lists(st.tuples(st.integers(0, 3), VALUES, VALUES, st.integers(0, 30)), max_size=30)


@given(FETCHES)
def test_memory_equals_sums_over_fetches(fetches):
    """The k-th last fetch of a host counts FADE^k."""
    memory = HostMemory()
    found = defaultdict(list)  # reward and lead of each fetch of a host
    pages, firsts = [], []
    for page, (host, reward, lead, proved) in enumerate(fetches):
        memory.fetched(host, reward)
        memory.led(page, host, lead)
        found[host].append([reward, lead])
        pages.append(found[host][-1])
        firsts.append(lead)
        memory.proved(proved)
        if proved <= page:
            pages[proved][1] = 1.0
    weights = {host: FADE ** np.arange(len(found[host]))[::-1] for host in found}
    sums = {host: weights[host] @ np.array(found[host]) for host in found}
    every = FADE ** np.arange(len(pages))[::-1]
    mean = every @ np.array(firsts) / every.sum() if pages else 0.5
    for host in range(4):
        count = weights[host].sum() if host in found else 0.0
        relevant, lead = sums.get(host, (0.0, 0.0))
        logit = np.log((relevant + 0.5) / (count - relevant + 0.5))
        assert memory.logits(HOSTS)[host] == pytest.approx(logit, abs=1e-4)
        assert memory.leads(HOSTS)[host] == pytest.approx((lead + mean) / (count + 1), abs=1e-4)
        assert memory.doubts(HOSTS)[host] == pytest.approx(1 / np.sqrt(1 + len(found[host])))


def test_relevant_link_proves_its_page():
    memory = HostMemory()
    for page in range(2):
        memory.fetched(page, 0.0)
        memory.led(page, page, 0.2)
    memory.proved(0)
    first, second, unknown = memory.leads(HOSTS[:3])
    assert first - second == pytest.approx(0.8 / 2, abs=1e-6)
    assert unknown == pytest.approx(0.2), "nothing is proved of other hosts"
    memory.proved(0)
    assert memory.leads(HOSTS[:3]).tolist() == [first, second, unknown], "once"
    memory.proved(7)
    assert memory.leads(HOSTS[:3]).tolist() == [first, second, unknown], "an unknown page"


def test_later_links_can_only_raise_the_lead():
    memory = HostMemory()
    memory.fetched(0, 0.0)
    memory.led(0, 0, 0.6)
    before = memory.leads(HOSTS[:1])[0]
    memory.led(0, 0, 0.3)
    assert memory.leads(HOSTS[:1])[0] == before
    memory.led(0, 0, 0.9)
    assert memory.leads(HOSTS[:1])[0] > before


def test_host_that_is_used_up_is_noticed_soon():
    memory = HostMemory()
    for _ in range(200):
        memory.fetched(0, 1.0)
    assert memory.logits(HOSTS[:1])[0] > 3
    for _ in range(14):
        memory.fetched(0, 0.0)
    assert memory.logits(HOSTS[:1])[0] < 0


def test_old_pages_are_forgotten(monkeypatch):
    monkeypatch.setattr(host_memory, "KEPT", 2)
    memory = HostMemory()
    for page in range(3):
        memory.fetched(page, 0.0)
        memory.led(page, page, 0.0)
    before = memory.leads(HOSTS).tolist()
    memory.proved(0)
    assert memory.leads(HOSTS).tolist() == before
    memory.proved(2)
    assert memory.leads(HOSTS).tolist() != before
