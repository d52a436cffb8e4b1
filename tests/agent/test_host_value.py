import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.agent.host_value import (
    COST,
    FADE,
    FRONT_MISS,
    GOOD,
    HIT,
    HUB,
    LEAST,
    MISS,
    OTHERS,
    REACH,
    STOCK,
    UNDECIDED,
    HostValues,
)

HOSTS = 5
EVENTS = st.lists(
    st.tuples(
        st.integers(0, HOSTS - 1),
        st.booleans(),
        st.booleans(),
        st.lists(st.integers(0, HOSTS - 1), max_size=4),
    ),
    max_size=25,
)


def gains_of(values, p=0.0, room=1_000, hosts=HOSTS):
    p = np.broadcast_to(np.float32(p), hosts)
    return values.gains(np.arange(hosts, dtype=np.int32), p, np.full(hosts, room, dtype=np.int32))


def told(events):
    values = HostValues()
    for host, relevant, is_front, targets in events:
        values.note_fetch(host, float(relevant), is_front=is_front)
        values.note_outlinks(host, np.array(targets, dtype=np.int32))
    return values


def slow_gains(events, p, room):
    """The same from the whole history, a host at a time."""
    past = {host: [] for host in range(HOSTS)}
    highest = -1  # of the hosts that are known
    for host, relevant, is_front, targets in events:
        highest = max(highest, host)
        new = len({target for target in targets if target > highest})
        highest = max([highest, *targets])
        past[host].append((relevant, HIT if relevant else FRONT_MISS if is_front else MISS, new))

    def faded(host, value):
        return sum(FADE**age * value(fetch) for age, fetch in enumerate(reversed(past[host])))

    fetches = [faded(host, lambda fetch: 1) for host in past]
    paying = sum(faded(host, lambda fetch: fetch[0]) > (fetches[host] + 0.5) / 2 for host in past)
    visited = sum(map(bool, past.values()))
    prior = (paying + 1) / (visited + 1 + OTHERS)
    lack = 1 - (highest + 1 - visited) / REACH
    best = max([LEAST, *(p[host] for host in past if fetches[host] > COST - 1)])
    found = []
    for host in past:
        logit = math.log(prior / (1 - prior)) + faded(host, lambda fetch: math.log(fetch[1]))
        good = 1 / (1 + math.exp(-logit)) if fetches[host] < UNDECIDED else 0
        arms = good + lack * HUB * prior * faded(host, lambda fetch: fetch[2]) / (fetches[host] + 1)
        found.append(max(0, GOOD - best) * min(room, STOCK) / COST * arms)
    return found


@given(
    EVENTS, st.lists(st.floats(0, 1, width=32), min_size=HOSTS, max_size=HOSTS), st.integers(0, 50)
)
def test_gains_equal_those_of_the_whole_past(events, p, room):
    expected = slow_gains(events, p, room)
    np.testing.assert_allclose(gains_of(told(events), p, room), expected, rtol=1e-3, atol=1e-6)


def test_nothing_is_to_be_gained_beside_a_good_host():
    values = told([(0, True, False, [])] * 3)
    assert not gains_of(values, [0.9, 0, 0, 0, 0]).any()
    assert gains_of(values, [0.3, 0, 0, 0, 0]).all(), "its good pages are used up"


def test_one_relevant_page_promises_more():
    gains = gains_of(told([(0, True, False, []), (1, False, True, []), (2, False, False, [])]))
    assert gains[0] > 2 * gains[3] > 2 * gains[1] > 2 * gains[2] > 0
    assert gains[3] == gains[4]


def test_host_that_never_pays_is_left():
    values = told([(0, False, False, [])] * 8)
    assert gains_of(values)[0] == 0


def test_page_that_opens_hosts_is_worth_them():
    hub, other = told([(0, False, False, [1, 2, 3])]), told([(0, False, False, [1])])
    assert gains_of(hub)[0] > gains_of(other)[0]
    again = told([(0, False, False, [1, 2, 3])] * 2)
    assert gains_of(again)[0] < gains_of(hub)[0], "they are known then"


def test_hosts_of_a_crawl_that_finds_much_are_trusted():
    rich = told([(host, True, False, []) for host in (0, 1, 2)])
    poor = told([(host, False, False, []) for host in (0, 1, 2)])
    assert gains_of(rich)[4] > 3 * gains_of(poor)[4]


@pytest.mark.parametrize("room", [0, 1, 10])
def test_little_is_gained_where_few_pages_are_left(room):
    assert gains_of(told([]), room=room) == pytest.approx(room / STOCK * gains_of(told([])))


def test_logits_are_those_of_the_last_fetches():
    values = told([(0, True, False, []), (0, False, False, [])])
    fetches, relevant = FADE + 1, FADE
    found = values.logits(np.array([0, 1, 0], dtype=np.int32))
    assert found[:2] == pytest.approx(
        [math.log((relevant + 0.5) / (fetches - relevant + 0.5)), 0], abs=1e-6
    )
    assert found[0] == found[2]


def test_hosts_are_not_looked_for_while_many_wait():
    few, many = HostValues(), HostValues()
    for values, waiting in ((few, 5), (many, REACH + 5)):
        values.note_fetch(0, 0.0)
        values.note_outlinks(0, np.arange(1, waiting + 1, dtype=np.int32))
    never_opened = told([(0, False, False, [])])
    assert gains_of(few)[0] > gains_of(never_opened)[0]
    assert gains_of(many)[0] == pytest.approx(gains_of(never_opened)[0])
