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
    HORIZON,
    HUB,
    LEAST,
    MISS,
    REACH,
    SHARES,
    STOCK,
    UNDECIDED,
    HostValues,
    _yield_of_best,
)

HOSTS = 5
EVENTS = st.lists(
    st.tuples(
        st.integers(0, HOSTS - 1),
        st.booleans(),
        st.booleans(),
        st.booleans(),
        st.lists(st.integers(0, HOSTS - 1), max_size=4),
    ),
    max_size=25,
)


def gains_of(values, p=0.0, room=1_000, on_relevant=False):
    """Return the gains of a link to each host."""
    p, room, on_relevant = (np.broadcast_to(each, HOSTS) for each in (p, room, on_relevant))
    hosts = np.arange(HOSTS, dtype=np.int32)
    return values.gains(hosts, p.astype("f4"), room.astype("i4"), on_relevant)


def told(events, wrong=()):
    """Return what was told of events; the rewards of the `wrong` ones are corrected at the end."""
    values, numbers = HostValues(), []
    for place, (host, relevant, is_front, on_relevant, targets) in enumerate(events):
        reward = float(relevant != (place in wrong))
        number = values.note_fetch(host, reward, is_front=is_front, on_relevant=on_relevant)
        values.note_outlinks(host, np.array(targets, dtype=np.int32))
        numbers.append((host, number, reward))
    for place in wrong:
        host, number, reward = numbers[place]
        values.correct_fetch(host, number, reward, 1 - reward, is_front=events[place][2])
    return values


def slow_gains(events, p, room, on_relevant):
    """The same from the whole history, a host at a time."""
    past = {host: [] for host in range(HOSTS)}
    kinds = {}
    highest = -1  # of the hosts that are known
    for host, relevant, is_front, linked, targets in events:
        highest = max(highest, host)
        new = len({target for target in targets if target > highest})
        highest = max([highest, *targets])
        kinds.setdefault(host, linked)
        past[host].append((relevant, HIT if relevant else FRONT_MISS if is_front else MISS, new))

    def faded(host, value):
        return sum(FADE**age * value(fetch) for age, fetch in enumerate(reversed(past[host])))

    fetches = [faded(host, lambda fetch: 1) for host in past]
    shares = []
    for kind, (good, visited) in enumerate(SHARES):
        hosts = [host for host in kinds if kinds[host] == kind]
        pays = [faded(host, lambda fetch: fetch[0]) > (fetches[host] + 0.5) / 2 for host in hosts]
        shares.append((good + sum(pays)) / (visited + len(hosts)))
    lack = 1 - (highest + 1 - len(kinds)) / REACH
    known = [max(LEAST, p[host]) for host in past if fetches[host] > COST - 1 and room[host]]
    best = sorted(known + [LEAST] * HORIZON)[-HORIZON:]
    found = []
    for host in past:
        share = shares[kinds.get(host, on_relevant[host])]
        logit = math.log(share / (1 - share)) + faded(host, lambda fetch: math.log(fetch[1]))
        good = 1 / (1 + math.exp(-logit)) if fetches[host] < UNDECIDED else 0
        opens = faded(host, lambda fetch: fetch[2]) / (fetches[host] + 1)
        gain = max(0, GOOD - sum(best) / HORIZON) * min(room[host], STOCK) / COST
        found.append(gain * (good + lack * HUB * shares[0] * opens))
    return found


def of_hosts(values):
    return st.lists(values, min_size=HOSTS, max_size=HOSTS)


@given(
    EVENTS,
    of_hosts(st.floats(0, 1, width=32)),
    of_hosts(st.integers(0, 30)),
    of_hosts(st.booleans()),
)
def test_gains_equal_those_of_the_whole_past(events, p, room, on_relevant):
    expected = slow_gains(events, p, room, on_relevant)
    found = gains_of(told(events), p, room, on_relevant)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)


@given(EVENTS, st.data())
def test_corrected_fetch_counts_as_if_it_had_been_so(events, data):
    wrong = data.draw(st.sets(st.integers(0, len(events) - 1))) if events else ()
    hosts, p = np.arange(HOSTS), np.linspace(0, 0.5, HOSTS)
    late, early = told(events, wrong), told(events)
    for found, expected in (
        (gains_of(late, p), gains_of(early, p)),
        (late.logits(hosts), early.logits(hosts)),
        (late.beliefs(hosts), early.beliefs(hosts)),
    ):
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)


@given(st.lists(st.floats(0, 1, width=32), min_size=11, max_size=30), st.integers(0, 99))
def test_best_links_of_hosts_with_room_are_the_best_of_all(p, seed):
    hosts = np.random.default_rng(seed).integers(0, 3, len(p))
    best = sorted((max(LEAST, np.float32(each)) for each in p), reverse=True)[:10]
    found = _yield_of_best(hosts, np.array(p, dtype=np.float32), np.full(len(p), 10))
    assert found == pytest.approx(sum(best) / 10, abs=1e-6)


def test_links_of_a_host_count_up_to_its_room():
    hosts = np.zeros(30, dtype=np.int32)
    hosts[15:] = 1
    p = np.full(30, 0.9, dtype=np.float32)
    assert _yield_of_best(hosts, p, np.full(30, 10)) == pytest.approx(0.9)
    assert _yield_of_best(hosts, p, np.full(30, 5)) == pytest.approx(0.9)
    assert _yield_of_best(hosts, p, np.full(30, 2)) == pytest.approx((4 * 0.9 + 6 * LEAST) / 10)
    assert _yield_of_best(hosts[:0], p[:0], hosts[:0]) == pytest.approx(LEAST)


def test_nothing_is_to_be_gained_beside_good_hosts():
    values = HostValues()
    for host in (0, 0, 0, 1, 1, 1):
        values.note_fetch(host, 1.0)
    hosts = np.array([0] * 6 + [1] * 6 + [2], dtype=np.int32)
    p = np.where(hosts < 2, 0.9, 0.0).astype("f4")
    room, on_relevant = np.full(13, 99, dtype=np.int32), np.zeros(13, dtype=bool)
    assert not values.gains(hosts, p, room, on_relevant).any()
    p[2:] = 0.1
    assert values.gains(hosts, p, room, on_relevant)[-1] > 0, "their good pages are used up"


def test_page_of_a_relevant_page_promises_more():
    values = HostValues()
    assert gains_of(values, on_relevant=True)[0] > 2 * gains_of(values)[0]
    for host in range(HOSTS):  # until it shows that relevant pages lead nowhere here
        values.note_fetch(host, 0.0, on_relevant=True)
        values.note_fetch(host + HOSTS, 1.0)
    hosts, none = np.array([90], dtype=np.int32), np.zeros(1, dtype="f4")
    room = np.full(1, 99, dtype=np.int32)
    linked, other = (values.gains(hosts, none, room, np.array([each])) for each in (True, False))
    assert linked[0] < other[0]


def test_one_relevant_page_promises_more():
    gains = gains_of(
        told(
            [(0, True, False, False, []), (1, False, True, False, []), (2, False, False, False, [])]
        )
    )
    assert gains[0] > 2 * gains[3] > 2 * gains[1] > 2 * gains[2] > 0
    assert gains[3] == gains[4]


def test_host_that_never_pays_is_left():
    values = told([(0, False, False, False, [])] * 8)
    assert gains_of(values)[0] == 0


def test_page_that_opens_hosts_is_worth_them():
    hub, other = told([(0, False, False, False, [1, 2, 3])]), told([(0, False, False, False, [1])])
    assert gains_of(hub)[0] > gains_of(other)[0]
    again = told([(0, False, False, False, [1, 2, 3])] * 2)
    assert gains_of(again)[0] < gains_of(hub)[0], "they are known then"


def test_hosts_of_a_crawl_that_finds_much_are_trusted():
    rich = told([(host, True, False, False, []) for host in (0, 1, 2)])
    poor = told([(host, False, False, False, []) for host in (0, 1, 2)])
    assert gains_of(rich)[4] > 3 * gains_of(poor)[4]


@pytest.mark.parametrize("room", [0, 1, 10])
def test_little_is_gained_where_few_pages_are_left(room):
    assert gains_of(told([]), room=room) == pytest.approx(room / STOCK * gains_of(told([])))


def test_logits_are_those_of_the_last_fetches():
    values = told([(0, True, False, False, []), (0, False, False, False, [])])
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
    never_opened = told([(0, False, False, False, [])])
    assert gains_of(few)[0] > gains_of(never_opened)[0]
    assert gains_of(many)[0] == pytest.approx(gains_of(never_opened)[0])
