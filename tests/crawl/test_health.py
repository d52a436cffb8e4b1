import numpy as np
import pytest

from tres_scrapy.config.download import RestOptions
from tres_scrapy.config.limit import FrontierLimits
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.host import JITTER, Health
from tres_scrapy.frontier import feature
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.recovery import restore_given_up
from tres_scrapy.frontier.store import NO_PARENT, Eligibility, SampleStore

SILENT = Failure("DownloadTimeoutError", passes=True)


def health_of(*urls, known=True, earlier=(), **options):
    """The health of the hosts of URLs, which are given a row each."""
    store = SampleStore(DomainLedger(limits=FrontierLimits(failures=5)))
    store.add(NO_PARENT, Outlinks(urls, urls, np.zeros((len(urls), 3), dtype=np.float32)))
    restore_given_up(store, np.array(earlier, dtype=np.int64))
    health = Health(store, RestOptions(**options))
    for host in range(len(store.hosts.names)) if known else ():
        health.note_answer(host, f"http://{store.hosts.names[host]}")
    return health, store


def rests_of(health, host, failure=SILENT):
    """Let a host fail after each rest until it is given up; return how long it rested."""
    now, pauses = 0.0, []
    while (rest := health.note_failure(host, failure, now)) is not None:
        pauses.append(rest.until - now)
        now = rest.until
    return pauses


@pytest.mark.parametrize(("known", "count"), [(True, 6), (False, 3)])
def test_rests_double_until_host_is_given_up(known, count):
    health, store = health_of("http://a.test/", known=known, unreachable=0)
    expected = [15.0 * 2**i for i in range(count)]
    assert rests_of(health, 0) == pytest.approx(expected, rel=JITTER)
    assert health.given_up == {0: SILENT.kind}
    assert store.eligibility(np.array([0]))[0] == Eligibility.DEAD
    assert not len(store.add(NO_PARENT, Outlinks(["http://a.test/2"], [""], np.zeros((1, 3)))))
    assert store.admission.refused == {"max_rests": 1}


@pytest.mark.parametrize(
    ("asked", "longest", "pause"), [(600.0, 3600.0, 600.0), (1e9, 50.0, 50.0), (0.0, 3600.0, 15.0)]
)
def test_wish_of_the_host_is_bounded(asked, longest, pause):
    health, _ = health_of("http://a.test/", longest=longest)
    rest = health.note_failure(0, Failure.of_status(503, asked), 0.0)
    assert rest.until == pytest.approx(pause, rel=JITTER)


@pytest.mark.parametrize("asked", [1.0, 15.0, 47.0])
@pytest.mark.parametrize("status", [429, 503])
def test_first_wish_is_kept_to_the_second(status, asked):
    health, _ = health_of("http://a.test/", unreachable=0)
    failure = Failure.of_status(status, asked)
    assert health.note_failure(0, failure, 100.0).until == 100.0 + asked
    assert (health.resting(99.9 + asked), health.resting(100.0 + asked)) == ([0], [])
    again = health.note_failure(0, failure, 200.0).until - 200.0
    assert again == pytest.approx(max(30.0, asked), rel=JITTER), "it fails after such a pause"


def test_requests_sent_before_count_once():
    health, _ = health_of("http://a.test/", unreachable=0)
    rest = health.note_failure(0, SILENT, 0.0)
    for _ in range(20):
        assert health.note_failure(0, SILENT, 1.0) is rest
    assert health.resting(1.0) == [0]
    assert health.until(1.0) == rest.until
    assert health.resting(rest.until) == []


def test_answer_ends_the_rests():
    health, _ = health_of("http://a.test/", unreachable=0)
    first = health.note_failure(0, SILENT, 0.0).until
    health.note_page(0)
    assert health.resting(1.0) == []
    assert health.note_failure(0, SILENT, first).number == 1


def test_host_of_earlier_run_gets_one_try():
    health, _ = health_of("http://a.test/", "http://b.test/", earlier=[1])
    assert rests_of(health, 1) == []
    assert len(health.given_up) == 1


def test_host_that_recovered_gets_all_its_rests():
    health, _ = health_of("http://a.test/", earlier=[0])
    health.note_page(0)
    assert len(rests_of(health, 0)) == 6


def test_outage_forgets_the_rests():
    urls = [f"http://{name}.test/" for name in "abc"]
    health, _ = health_of(*urls)
    for host in range(3):
        assert not health.in_doubt
        health.note_failure(host, SILENT, 0.0)
    assert health.in_doubt
    pauses = [health.note_probe(answered=False, now=1.0) for _ in range(4)]
    assert pauses == [15.0, 30.0, 60.0, 60.0]
    assert health.resting(1.0) == []
    assert health.note_failure(0, SILENT, 2.0).number == 0, "it does not count"
    assert health.note_probe(answered=True, now=100.0) is None
    assert not health.in_doubt
    assert health.note_failure(0, SILENT, 100.0).number == 1


@pytest.mark.parametrize("failure", [Failure.of_status(429), Failure.of_status(503, 9.0)])
def test_hosts_that_ask_for_patience_are_there(failure):
    health, _ = health_of("http://a.test/")
    health.note_failure(0, failure, 0.0)
    assert not health.in_doubt


def test_trap_of_dead_hosts_ends_its_domain():
    urls = ["http://good.test/", *(f"http://h{i}.trap.test/" for i in range(5))]
    health, store = health_of(*urls, known=False)
    health.note_answer(0, "http://good.test")
    for host in range(1, 6):
        health.note_failure(host, SILENT, 0.0)
        health.note_answer(0, "http://good.test")
    assert store.ledger.given_up(store["domain"].take(np.arange(6))).tolist() == [
        False,
        *[True] * 5,
    ]


def test_links_of_unknown_host_come_last():
    health, _ = health_of("http://a.test/", known=False)
    assert health.set_back(0, 0)
    health, _ = health_of("http://a.test/", "http://a.test/2")
    assert not health.set_back(0, 0)
    assert health.set_back(0, 0), "it failed twice, and no other link was tried"


def test_link_that_fails_alone_is_blamed():
    health, _ = health_of("http://a.test/", "http://a.test/2")
    health.set_back(0, 0)
    assert not health.blames(0, SILENT)
    assert health.note_page(0) == [0]
    assert health.blames(0, SILENT)
    assert not health.blames(0, Failure.of_status(429)), "the host said that it is too much"
    health.note_booking(0)
    assert not health.blames(0, SILENT)


def test_one_domain_casts_no_doubt_on_the_network():
    """A domain of 60 hosts answers, then refuses."""
    good = [f"http://{name}.test/" for name in "abc"]
    health, _ = health_of(*good, *(f"http://h{i}.trap.test/" for i in range(60)))
    for host in range(3, 63):
        health.note_failure(host, SILENT, 0.0)
    assert not health.in_doubt
    health.note_failure(0, SILENT, 0.0)
    health.note_failure(1, SILENT, 0.0)
    assert not health.in_doubt
    health.note_failure(2, SILENT, 0.0)
    assert health.in_doubt, "all four domains failed together"


def test_dead_domains_are_no_outage():
    health, _ = health_of(*(f"http://h{i}.test/" for i in range(40)), known=False, unreachable=3)
    for host in range(4):
        health.note_answer(host, f"http://h{host}.test")
    for host in range(4, 40):
        health.note_failure(host, SILENT, 0.0)
    assert health.in_doubt
    health.note_probe(True, 1.0)
    assert not health.in_doubt


def test_probe_asks_an_early_host_whatever_came_later():
    first = [f"http://h{i}.test" for i in range(4)]
    health, _ = health_of(*(f"http://h{i}.test/" for i in range(40)))
    asked = [health.origins() for _ in range(4)]
    assert all(origins[:4] == first for origins in asked)
    assert len({origin for origins in asked for origin in origins[4:]}) == 8


def found_by(*urls, known=True, **options):
    """The health of evil.test and good.test, and rows of links of evil.test to these URLs."""
    health, store = health_of("http://evil.test/", "http://good.test/", known=known, **options)
    links = Outlinks(urls, urls, np.zeros((len(urls), 3), dtype=np.float32))
    store.finish(lease(store, 0), feature.SEED_PATH)
    return health, store, store.add(0, links).tolist()


def lease(store, row):
    store.lease(row)
    return row


def test_broken_links_of_another_site_do_not_end_a_host():
    health, store, rows = found_by("http://good.test/broken", "http://good.test/too")
    rests = 0
    while (rest := health.note_failure(1, SILENT, 1e4 * rests, rows[0])) is not None:
        rests = rest.number
    assert rests == 6
    assert not health.given_up
    states = [Eligibility.READY, Eligibility.DEAD, Eligibility.DEAD]
    assert store.eligibility(np.array([1, *rows])).tolist() == states


def test_dead_names_of_another_sites_links_do_not_end_a_domain():
    urls = [f"http://h{i}.good.test/" for i in range(8)]
    health, store, rows = found_by(*urls, known=False)
    for row in rows:
        health.note_failure(int(store["host"][row]), SILENT, 0.0, row)
    assert not store.ledger.given_up(store["domain"]).any()
    assert store.eligibility(np.array([1, rows[0]])).tolist() == [
        Eligibility.READY,
        Eligibility.DEAD,
    ]


@pytest.mark.parametrize(
    ("url", "failure", "blamed"),
    [
        ("http://good.test:81/", SILENT, True),
        ("http://good.test:81/", Failure.of_status(503), False),
        ("http://good.test/", SILENT, False),
        ("http://evil.test:81/", SILENT, False),
    ],
)
def test_link_to_a_silent_port_of_another_site_is_blamed(url, failure, blamed):
    health, _, (row,) = found_by(url)
    assert health.blames(row, failure) == blamed


def test_port_that_has_answered_may_fail():
    health, _, (row,) = found_by("http://good.test:81/")
    health.note_answer(1, "http://good.test:81")
    assert not health.blames(row, SILENT)


def test_walls_of_another_sites_links_rest_a_host_twice():
    """The results of a search show what a link asks for, also the words of a wall."""
    health, _, (row,) = found_by("http://good.test/search?q=human")
    assert [health.heeds_wall(row) for _ in range(4)] == [True, True, False, False]
    assert all(health.heeds_wall(1) for _ in range(4))
