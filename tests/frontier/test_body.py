"""The bodies of sites, compared with what is unreachable without each site."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.body import FEW, Bodies
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore

SIZE = 9


@st.composite
def webs(draw):
    """Who found each site, the links between sites, and the seeds; the first is a seed."""
    numbers = st.integers(0, SIZE - 1)
    finders = [NO_PARENT, *(draw(st.integers(0, site - 1)) for site in range(1, SIZE))]
    links = {(finder, site) for site, finder in enumerate(finders) if finder != NO_PARENT}
    links |= {(a, b) for a, b in draw(st.lists(st.tuples(numbers, numbers))) if a != b}
    seeds = {0} | draw(st.sets(numbers, max_size=2))
    return finders, links, seeds


def bodies_of(finders, links, seeds, few=0):
    ends = np.array(sorted(links), dtype=np.int64).reshape(-1, 2).T
    return Bodies(np.array(finders), ends, np.array(sorted(seeds)), few=few)


def reached(links, starts, without):
    found = set(starts) - {without}
    while more := {b for a, b in links if a in found and b not in found and b != without}:
        found |= more
    return found


def slow_around(links, starts, site):
    """Return a site and those without which it is out of reach, the innermost first."""
    if site in starts:
        return [site]
    needed = {
        door
        for door in range(SIZE)
        if door not in starts and site not in reached(links, starts, door)
    }
    return sorted(needed, key=lambda a: sum(b not in reached(links, starts, a) for b in needed))


def around(bodies, site):
    inside = [other for other in range(SIZE) if bodies.members(other)[site]]
    return sorted(inside, key=lambda other: -bodies.depths[other])


@given(webs())
def test_bodies_are_what_is_reached_through_a_site_only(web):
    _, links, seeds = web
    bodies = bodies_of(*web)
    for site in range(SIZE):
        expected = slow_around(links, seeds, site)
        assert around(bodies, site) == expected
        assert bodies.doors[site] == expected[-1]
        assert bodies.depths[site] == len(expected)


@given(webs(), st.lists(st.integers(0, 99), min_size=SIZE, max_size=SIZE))
def test_numbers_are_added_up_and_handed_down(web, numbers):
    bodies, numbers = bodies_of(*web), np.array(numbers, dtype=np.int32)
    members = np.array([bodies.members(site) for site in range(SIZE)])
    assert bodies.sums(numbers).tolist() == (members @ numbers).tolist()
    assert bodies.inherited(numbers).tolist() == (members * numbers[:, None]).max(axis=0).tolist()
    assert bodies.linkers.sum() == len(web[1])


@pytest.mark.parametrize("few", [FEW, FEW + 1])
def test_few_sites_that_a_seed_links_to_are_as_good(few):
    finders = [NO_PARENT, *[0] * few, 1]
    links = {(finder, site) for site, finder in enumerate(finders) if site}
    bodies = bodies_of(finders, links, {0}, FEW)
    assert bodies.seeds.tolist() == [0]
    assert (bodies.doors[-1] == 1) == (few > FEW)


def add(store, parent, *urls):
    return store.add(parent, Outlinks(urls, [""] * len(urls), np.zeros((len(urls), 3), "f4")))


@pytest.mark.parametrize("inlinks", [True, False])
def test_site_found_by_redirect_is_alone(inlinks):
    store = SampleStore(DomainLedger(inlinks=inlinks))
    (seed,) = add(store, NO_PARENT, "http://seed.test/")
    store.lease(seed)
    store.finish(seed, SEED_PATH)
    farm, *_ = add(store, seed, *(f"http://{name}.test/" for name in ("farm", *"abcde")))
    store.lease(farm)
    store.finish(farm, SEED_PATH)
    moved, _ = add(store, farm, "http://farm.test/1", "http://linked.test/")
    store.lease(moved)
    store.redirect(moved, "http://other.test/")
    names, bodies = store.ledger.names, Bodies.of(store)
    doors = {name: names[bodies.doors[names.index(name)]] for name in names}
    assert doors["other.test"] == "other.test"
    assert doors["linked.test"] == ("farm.test" if inlinks else "linked.test")
