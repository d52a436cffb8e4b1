"""The bodies of sites, compared with what is unreachable without their doors."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.frontier.body import LINKERS, SiteLinks

SIZE = LINKERS + 1  # so that no link is left out


def doors_of(links, starts, size=SIZE):
    found = np.array(sorted(links), dtype=np.int64).reshape(-1, 2)
    sites = SiteLinks(found[:, 0], found[:, 1], size)
    return sites.doors(np.array(sorted(starts))).tolist()


def reached(links, starts, without):
    found = set(starts) - {without}
    while more := {b for a, b in links if a in found and b not in found and b != without}:
        found |= more
    return found


def slow_doors(links, starts, size=SIZE):
    """Return the first site without which a site is out of reach, by trying all of them."""
    doors = []
    for site in range(size):
        needed = {
            door
            for door in set(range(size)) - set(starts) - {site}
            if site not in reached(links, starts, door)
        }
        if site in starts or not needed:
            doors.append(site)
            continue
        (first,) = [
            d for d in needed if not any(d not in reached(links, starts, e) for e in needed - {d})
        ]
        doors.append(first)
    return doors


@given(
    finders=st.lists(st.integers(0, SIZE), min_size=SIZE - 1, max_size=SIZE - 1),
    more=st.lists(st.tuples(st.integers(0, SIZE - 1), st.integers(1, SIZE - 1)), max_size=15),
    starts=st.sets(st.integers(0, SIZE - 1), max_size=2),
)
def test_doors_dominate_their_sites(finders, more, starts):
    # a site is found by one with a lower number
    links = {(finder % site, site) for site, finder in enumerate(finders, 1)}
    links |= {(a, b) for a, b in more if a != b}
    starts |= {0}
    assert doors_of(links, starts) == slow_doors(links, starts)


def test_site_found_by_redirect_is_its_own_door():
    assert doors_of({(0, 1), (3, 2), (2, 3)}, {0}, 4) == [0, 1, 2, 2]


def test_only_the_first_linkers_count():
    links = {(0, n) for n in range(1, 12)} | {(n, 12) for n in range(1, 12)} | {(0, 13)}
    sites = SiteLinks(*np.array(sorted(links)).T, 14)
    assert sites.counts[12] == 11
    assert sites.doors(np.array([0]))[12] == 12
