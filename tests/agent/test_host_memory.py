from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.agent import link_learner
from tres_scrapy.agent.link_learner import FADE, HostMemory

HOSTS = np.arange(4, dtype=np.int32)
VALUES = st.sampled_from([0.0, 0.25, 1.0])
FETCHES = st.lists(st.tuples(st.integers(0, 3), VALUES, VALUES), max_size=30)  # reward, lead


@given(FETCHES)
def test_memory_equals_sums_over_fetches(fetches):
    """The k-th last fetch of a host counts FADE^k."""
    memory = HostMemory()
    found = defaultdict(list)  # reward and lead of each fetch of a host
    for row, (host, reward, lead) in enumerate(fetches):
        memory.note_fetch(host, reward)
        memory.note_lead(row, host, lead)
        found[host].append([reward, lead])
    every = FADE ** np.arange(len(fetches))[::-1]
    mean = every @ np.array(fetches)[:, 2] / every.sum() if fetches else 0.5
    for host in range(4):
        weights = FADE ** np.arange(len(found[host]))[::-1]
        relevant, lead = weights @ np.array(found[host]).reshape(-1, 2)
        count = weights.sum()
        logit = np.log((relevant + 0.5) / (count - relevant + 0.5))
        assert memory.logits(HOSTS)[host] == pytest.approx(logit, abs=1e-4)
        assert memory.leads(HOSTS)[host] == pytest.approx((lead + mean) / (count + 1), abs=1e-4)
        assert memory.doubts(HOSTS)[host] == pytest.approx(1 / np.sqrt(1 + len(found[host])))


@given(FETCHES, st.lists(st.integers(0, 40), max_size=30))
def test_leads_are_shares(fetches, proved):
    memory = HostMemory()
    for row, (host, reward, lead) in enumerate(fetches):
        memory.note_fetch(host, reward)
        memory.note_lead(row, host, lead)
        before = memory.leads(HOSTS)
        for page in proved[row : row + 1]:
            memory.note_proof(page)
        leads = memory.leads(HOSTS)
        assert (leads >= before).all()
        assert (leads <= 1 + 1e-6).all()


def test_relevant_link_proves_its_page():
    memory = HostMemory()
    for page in range(2):
        memory.note_fetch(page, 0.0)
        memory.note_lead(page, page, 0.2)
    memory.note_proof(0)
    first, second, unknown = memory.leads(HOSTS[:3])
    assert first - second == pytest.approx(0.8 / 2, abs=1e-6)
    assert unknown == pytest.approx(0.2), "nothing is proved of other hosts"
    memory.note_proof(0)
    assert memory.leads(HOSTS[:3]).tolist() == [first, second, unknown], "once"
    memory.note_proof(7)
    assert memory.leads(HOSTS[:3]).tolist() == [first, second, unknown], "an unknown page"


def test_later_links_can_only_raise_the_lead():
    memory = HostMemory()
    memory.note_fetch(0, 0.0)
    memory.note_lead(0, 0, 0.6)
    before = memory.leads(HOSTS[:1])[0]
    memory.note_lead(0, 0, 0.3)
    assert memory.leads(HOSTS[:1])[0] == before
    memory.note_lead(0, 0, 0.9)
    assert memory.leads(HOSTS[:1])[0] > before


def test_host_that_is_used_up_is_noticed_soon():
    memory = HostMemory()
    for _ in range(200):
        memory.note_fetch(0, 1.0)
    assert memory.logits(HOSTS[:1])[0] > 3
    for _ in range(14):
        memory.note_fetch(0, 0.0)
    assert memory.logits(HOSTS[:1])[0] < 0


def test_old_pages_are_forgotten(monkeypatch):
    monkeypatch.setattr(link_learner, "PAGES_KEPT", 2)
    memory = HostMemory()
    for page in range(3):
        memory.note_fetch(page, 0.0)
        memory.note_lead(page, page, 0.0)
    before = memory.leads(HOSTS).tolist()
    memory.note_proof(0)
    assert memory.leads(HOSTS).tolist() == before
    memory.note_proof(2)
    assert memory.leads(HOSTS).tolist() != before
