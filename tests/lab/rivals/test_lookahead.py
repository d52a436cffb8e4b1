from __future__ import annotations

import numpy as np
import pytest
from comparing.simulation import Simulation, World
from conftest import DATA
from hypothesis import given
from hypothesis import strategies as st
from judged import judged
from rivals.graph import Graph
from rivals.inputs import GraphInputs
from rivals.lookahead import LookaheadPolicy

from tres_scrapy import settings
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.crawl.assembly import make_crawl
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.links.model import NO_PRIOR

UNIVERSITY = DATA / "university.warc.gz"
HUB = "http://www.cs.wisc.edu/directories/gradlist.html"


class Trip:
    """A crawl of pages by name, from "s" or "S"; names in capitals are relevant.

    `links` maps names to the names of linked pages; "a" and "A" are on one host. The graph knows
    that `dead` names are no pages, but not that `failing` pages cannot be fetched.
    """

    def __init__(self, links, cap=None, dead="", aliases=None, failing=""):
        names = sorted({*links, *"".join(links.values())} - set(dead) - {*(aliases or {})})
        pairs = [
            (names.index(source), names.index((aliases or {}).get(target, target)))
            for source, targets in links.items()
            for target in targets
            if source not in dead and target not in dead
        ]
        known = {url_of(alias): names.index(name) for alias, name in (aliases or {}).items()}
        graph = Graph(list(map(url_of, names)), pairs, list(map(str.isupper, names)), known)
        self.links, self.aliases = links, aliases or {}
        self.store = SampleStore(DomainLedger(cap))
        self.crawl = Crawl(self.store, LookaheadPolicy(self.store, GraphInputs(graph=graph)))
        self.missing = {*dead, *failing}
        seed = url_of("S" if "S" in links else "s")
        self.crawl.add_seeds(Outlinks([seed], [""], np.zeros((1, 3), dtype=np.float32)))
        self.order = ""

    def step(self, busy=""):
        """Fetch the next page and return its name, "" at the end."""
        hosts = [self.store.hosts.names.index(f"{name.lower()}.test") for name in busy]
        decision = self.crawl.next(Availability(hosts))
        if decision is None:
            return ""
        name = self.store.url(decision.row)[-1]
        self.order += name
        end = self.aliases.get(name, name)
        if end != name and not self.crawl.redirect(decision.row, url_of(end)):
            self.crawl.book(decision.row, Failure("redirect_closed"))
        elif end in self.missing:
            self.crawl.book(decision.row, Failure("http_404"))
        else:
            urls = [url_of(link) for link in self.links.get(end, "")]
            none = np.zeros((len(urls), 3), dtype=np.float32)
            self.crawl.book(decision.row, judged(end.isupper()), Outlinks(urls, urls, none))
        return name

    def run(self):
        while self.step():
            pass
        return self.order


def url_of(name):
    return f"http://{name.lower()}.test/{name}"


def test_nearest_relevant_page_is_first():
    links = {"s": "abc", "a": "d", "d": "A", "b": "e", "c": "C", "C": "", "e": "f", "f": "g"}
    assert Trip(links).run() == "scCadAbefg"


def test_relevant_page_precedes_way_to_many():
    assert Trip({"s": "aB", "a": "CDE"}).run() == "sBaCDE"


def test_page_with_more_relevant_links_wins_a_tie():
    assert Trip({"s": "ab", "a": "C", "b": "DE"}).run() == "sbDEaC"
    deeper = {"s": "ab", "a": "c", "b": "d", "c": "E", "d": "FG"}
    assert Trip(deeper).run() == "sbdFGacE"

    of_target = {"s": "ab", "a": "C", "C": "DEF", "b": "GH"}
    assert Trip(of_target).run() == "sbGHaCDEF", "only links of a and b count"


def test_oldest_link_wins_a_tie():
    assert Trip({"s": "Xab", "X": "ba", "a": "C", "b": "D"}).run() == "sXaCbD"


def test_fruitless_links_come_last_and_dead_links_after_them():
    assert Trip({"s": "xabC"}, dead="x").run() == "sCabx"


def test_fetched_page_is_no_target():
    links = {"s": "Aab", "a": "A", "b": "cA", "c": "D"}
    assert Trip(links).run() == "sAbcDa"
    assert Trip({"S": "ab", "a": "S", "b": "C"}).run() == "SbCa", "nor is the seed"


def test_page_being_fetched_is_no_target():
    trip = Trip({"s": "Aab", "a": "A", "b": "c", "c": "D"})
    trip.step()
    assert [trip.store.url(trip.crawl.next().row)[-1] for _ in range(3)] == ["A", "b", "a"]


def test_failed_page_is_no_way():
    links = {"s": "abe", "a": "A", "b": "a", "e": "f", "f": "g", "g": "A"}
    assert Trip(links, failing="a").run() == "saefgAb"


def test_redirect_stands_for_its_page():
    links = {"s": "rab", "a": "B", "b": "A"}
    trip = Trip(links, aliases={"r": "B"})
    assert trip.run() == "srbAa", "B is fetched by r, so a leads to nothing"


def test_page_of_full_domain_is_no_target():
    links = {"s": "ab", "a": "S", "b": "d", "d": "C"}
    assert Trip(links, cap=Cap(1, 1)).run() == "sbdCa"


def test_link_that_is_not_readmitted_stays_out():
    trip = Trip({"s": "aA", "a": "B"}, cap=Cap(1, 1))
    assert trip.run() == "sA"
    trip.crawl.change_cap(None, own=())
    assert trip.crawl.policy.select() is None


def test_busy_host_waits_for_its_turn():
    trip = Trip({"s": "Ab", "b": "C"})
    assert [trip.step(), trip.step("A"), trip.step("A"), trip.step()] == ["s", "b", "C", "A"]
    trip = Trip({"s": "A"})
    assert [trip.step(), trip.step("A"), trip.step()] == ["s", "", "A"]


def test_value_tells_the_distance():
    trip = Trip({"s": "xbaC", "a": "D", "b": "c", "c": "E"}, dead="x")
    trip.step()
    values = []
    for _ in range(4):
        decision = trip.crawl.policy.select()
        trip.store.lease(decision.row)
        values.append(decision.q_value)
    assert values == [1, 1 / 2, 1 / 3, -1]


NAMES = "abcdefgABC"


@given(
    st.fixed_dictionaries({name: st.text(NAMES, max_size=3) for name in "s" + NAMES}),
    *(st.sets(st.sampled_from(NAMES), max_size=2) for _ in range(2)),
    st.sampled_from([None, Cap(1, 1)]),
)
def test_way_is_that_of_a_search_at_each_step(links, dead, failing, cap):
    """Against a search forward from each waiting link, at each step."""
    trip = Trip(links, cap, dead="".join(dead), failing="".join(failing))
    expected, waiting, fetched, full = "", ["s"], set(), set()
    while waiting:
        usable = set(NAMES) - fetched - dead - full
        ranks = {name: rank_of(name, links, usable) for name in waiting}
        best = min(waiting, key=lambda name: (ranks[name], name in dead))
        expected += best
        fetched.add(best)
        if best not in dead | failing:
            waiting += links[best]
            full |= {best.lower(), best.upper()} if cap else set()
        waiting = [name for name in waiting if name not in fetched | full]
    assert trip.run() == expected


def rank_of(name, links, usable):
    """Return fetches to a relevant page, then how many such pages the best way ends at, negated."""
    ways, fetches = [name] if name in usable else [], 1
    if name.isupper() and ways:
        return 1, -leads(name, links, usable)
    seen = set(ways)
    while ways:
        found = [way for way in ways if leads(way, links, usable)]
        if found:
            return fetches + 1, -max(leads(way, links, usable) for way in found)
        ways = [link for way in ways for link in links.get(way, "") if link in usable - seen]
        seen.update(ways)
        fetches += 1
    return float("inf"), 0


def leads(name, links, usable):
    found = set(links.get(name, "")) - {name}
    return sum(link.isupper() and link in usable for link in found)


def test_policy_needs_a_graph():
    with pytest.raises(ValueError, match=r"graph of an offline web"):
        LookaheadPolicy(SampleStore(DomainLedger()), GraphInputs())


@pytest.mark.parametrize("web", [None, SyntheticWeb("food")])
def test_web_without_known_pages_is_refused(web):
    pack = type("Pack", (), {"given": (), "link_prior": NO_PRIOR})
    with pytest.raises(ConfigError, match=r"LOOKAHEAD: it needs the links .* web=recorded or"):
        make_crawl(Config(topic="food", policy="rivals:LOOKAHEAD"), pack, web)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.skipif(not UNIVERSITY.exists(), reason=f"{UNIVERSITY} is not there")
def test_all_courses_of_a_real_web_are_found():
    labels = DATA / "university-course.txt"
    web = WebOptions("recorded", data=UNIVERSITY, labels=labels)
    relevant = {}
    world = None
    for policy in ("rivals:LOOKAHEAD", "oracle"):
        config = Config(topic="food", policy=policy, pages=200, seed=(HUB,), web=web)
        world = world or World(config, user_agent=settings.USER_AGENT)
        relevant[policy] = Simulation(world, config).run().relevant
    assert relevant["rivals:LOOKAHEAD"] == len(set(labels.read_text().split()))
    assert relevant["oracle"] < 0.5 * relevant["rivals:LOOKAHEAD"]
