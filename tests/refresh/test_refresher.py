"""The rules of a refresh run, with fixed answers and a fixed clock."""

from dataclasses import replace

import numpy as np
import pytest

from tres_scrapy.refresh.collection import KnownPage
from tres_scrapy.refresh.collection_file import Store
from tres_scrapy.refresh.collection_row import Host
from tres_scrapy.refresh.main_text import Reading, copy_of
from tres_scrapy.refresh.refresh_request import PageAnswer
from tres_scrapy.refresh.refresher import Refresher
from tres_scrapy.refresh.refresher_option import RefresherOptions
from tres_scrapy.refresh.registry import POLICIES
from tres_scrapy.refresh.visit_item import item_of

OLD, NEW, NEAR = (
    " ".join(f"{word}{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(200))
    for word in ("old", "new", "old")
)
NEAR = f"{OLD} 17 visitors"
OPTIONS = RefresherOptions(100, min_age=10.0, max_age=1e6, retry=50.0, jitter=0.0)


class Drawn:
    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


@pytest.fixture
def keep(tmp_path):
    """Return a function that opens a keeper over the same store, as a new process would."""
    stores = []

    def make(count=3, now=0.0, *, copies=True, **options):
        for store in stores:
            store.close()
        stores.append(Store(tmp_path / "s.sqlite"))
        known = [
            KnownPage(
                f"http://h{i % 2}.test/d/{i}", 1.0, 0.0, copy_of("T", OLD) if copies else None
            )
            for i in range(count)
        ]
        return Refresher(stores[-1], replace(OPTIONS, **options), known, now)

    yield make
    for store in stores:
        store.close()


def text(words, *, status=200, links=(), **validators):
    reading = Reading("T", words, tuple((url, "") for url in links), copy_of("T", words))
    return PageAnswer(status, "", "http://end.test/", reading, reading.copy, **validators)


def visit(keeper, now, answer):
    """Visit a page and allow another visit, as if each visit were a separate run."""
    errand = keeper.next(now)
    report = keeper.book(errand, answer, now)
    keeper._asked.clear()
    keeper._ready[errand.place] = keeper._ready_at(keeper.rows[errand.place])
    return errand, report


def failed(status=None, error="TimeoutError"):
    return PageAnswer(status, error)


@pytest.mark.parametrize(
    ("words", "change", "changes"),
    [(OLD, "unchanged", 0), (NEAR, "minor", 0), (NEW, "changed", 1)],
)
def test_text_decides(keep, words, change, changes):
    keeper = keep(1)
    _, report = visit(keeper, 100.0, text(words))
    assert (report.change, report.changes, report.age) == (change, changes, 100.0)
    (row,) = keeper.store.pages()
    assert (row.changes, row.quiet) == (changes, 1 - changes)
    assert row.changed_time + row.quiet_time == 100
    assert row.last_seen == 100
    assert (report.text != "") is (change != "unchanged")


def test_minor_is_change_if_asked_for(keep):
    keeper = keep(1, minor_is_change=True)
    assert visit(keeper, 100.0, text(NEAR))[1].changes == 1


def test_unfetched_page_comes_first(keep):
    keeper = keep(2, copies=False)
    assert visit(keeper, 0.0, text(OLD))[1].change == "new"
    assert visit(keeper, 0.0, text(OLD))[1].change == "new"
    assert keeper.store.pages()[0].quiet == 0
    assert keeper.next(0.0) is None, "min_age"


def test_validators_are_sent_once_known(keep):
    keeper = keep(1)
    keeper._validators._random = Drawn(0.9)  # no audit
    first, _ = visit(keeper, 100.0, text(OLD, etag='"1"', modified="Fri"))
    assert not first.conditional
    second, report = visit(keeper, 200.0, PageAnswer(304))
    assert (second.etag, second.modified) == ('"1"', "Fri")
    assert report.change == "unchanged"
    assert keeper.store.pages()[0].quiet_time == 200


def test_unrequested_304_is_an_error(keep):
    keeper = keep(1)
    assert visit(keeper, 100.0, PageAnswer(304, "HTTP 304"))[1].change == "error"


def test_lying_validators_are_distrusted(keep):
    keeper = keep(1)
    now = 0.0
    for words in (OLD, NEW):
        now += 100
        visit(keeper, now, text(words, etag='"same"'))
    assert keeper.store.hosts() == {"h0.test": Host(0, 1)}
    for _ in range(20):
        now += 100
        assert not visit(keeper, now, text(NEW, etag='"same"'))[0].conditional


def test_validators_are_tried_now_and_then(keep):
    keeper = keep(1, budget=1_000)
    conditional = []
    for number in range(200):
        errand, _ = visit(keeper, 100.0 * (number + 1), text(OLD, etag='"1"'))
        conditional.append(errand.conditional)
    assert 100 < sum(conditional) < 185


def test_errors_delay_the_next_try(keep):
    keeper = keep(1)
    now, tried = 100.0, []
    for _ in range(4):
        tried.append(now)
        _, report = visit(keeper, now, failed())
        assert (report.change, report.error) == ("error", "TimeoutError")
        assert keeper.next(now) is None
        now += keeper.ready_in(now)
    assert tried == [100, 150, 250, 450]
    (row,) = keeper.store.pages()
    assert (row.changes, row.quiet, row.last_seen, row.gone) == (0, 0, 0, False)
    visit(keeper, now, text(OLD))
    assert keeper.store.pages()[0].errors == 0


def test_server_errors_never_mean_gone(keep):
    keeper = keep(1)
    now = 100.0
    for _ in range(12):
        assert visit(keeper, now, failed(503, "HTTP 503"))[1].change == "error"
        now += keeper.ready_in(now)


@pytest.mark.parametrize("status", [404, 410])
def test_gone_page_may_return(keep, status):
    keeper = keep(1, grace=3)
    now, said = 100.0, []
    for _ in range(3):
        said.append(visit(keeper, now, failed(status, f"HTTP {status}"))[1].change)
        now += keeper.ready_in(now)
    assert said == ["error", "error", "gone"]
    assert keeper.store.pages()[0].gone
    assert visit(keeper, now, text(NEW))[1].change == "new"
    assert not keeper.store.pages()[0].gone


def test_soft_404_is_a_miss(keep):
    keeper = keep(1, grace=1)
    answer = text("Page not found")
    answer = replace(answer, reading=replace(answer.reading, missing=True))
    assert visit(keeper, 100.0, answer)[1].change == "gone"


def test_open_run_asks_once(keep):
    keeper = keep(2, budget=9, min_age=0.0)
    keeper.book(keeper.next(100.0), text(OLD), 100.0)
    keeper = keep(2, now=200.0, budget=9, min_age=0.0)
    errand = keeper.next(300.0)
    keeper.book(errand, failed(), 300.0)
    assert keeper.next(1e9) is None
    assert keeper.ready_in(1e9) == float("inf")


def test_budget_is_never_exceeded(keep):
    keeper = keep(3, budget=2)
    assert keeper.next(100.0) is not None
    assert keeper.next(100.0) is not None
    assert keeper.next(100.0) is None
    assert keeper.run.spent(100.0)


def test_requests_are_spread_over_the_horizon(keep):
    keeper = keep(5, now=1_000.0, budget=5, horizon=50.0)
    sent = []
    now = 1_000.0
    while not keeper.run.spent(now):
        if keeper.next(now) is not None:
            sent.append(now)
        now += keeper.run.wait(now)
    assert sent == [1_000, 1_010, 1_020, 1_030, 1_040]
    assert keeper.run.wait_for_end(1_040.0) == 10


def test_late_run_keeps_its_time(keep):
    keeper = keep(2, budget=2, horizon=50.0)
    keeper.run.start(500.0)
    assert keeper.next(500.0) is not None
    keeper.run.start(900.0)
    assert keeper.run.wait(500.0) == 25


def test_killed_run_continues(keep):
    keeper = keep(3, now=100.0, budget=4, horizon=400.0)
    visit(keeper, 100.0, text(NEW))
    keeper.next(250.0)  # and killed before it is answered
    keeper = keep(3, now=260.0, budget=4, horizon=400.0)
    assert (keeper.run.resumed, keeper.lost, keeper.run.sent) == (True, 1, 2)
    assert keeper.pages.changes.sum() == 1
    assert keeper.run.wait(260.0) == 40
    sent = [keeper.next(now) for now in (300.0, 400.0, 400.0)]
    assert [errand is not None for errand in sent] == [True, True, False]


def test_other_wishes_begin_another_run(keep):
    keep(3, now=100.0, budget=4)
    assert keep(3, now=200.0, budget=4).run.resumed
    assert not keep(3, now=300.0, budget=5).run.resumed
    keep(3, now=400.0, budget=5, horizon=10.0)
    assert not keep(3, now=500.0, budget=5, horizon=10.0).run.resumed, "its time is over"


def test_open_pace_follows_the_runs(keep):
    keeper = keep(3, now=0.0, budget=10)
    assert keeper.run.pace == pytest.approx(10 / 86_400)
    keeper.end(5.0, finished=True)
    assert keep(3, now=3_600.0, budget=10).run.pace == pytest.approx(10 / 3_600)


def test_items_wait_until_they_are_delivered(keep):
    keeper = keep(1)
    _, report = visit(keeper, 100.0, text(NEW))
    ((number, kept),) = keep(1, now=200.0).store.outbox()
    assert number == report.visit
    assert item_of(kept) == report


def test_ages_and_busy_hosts_bind(keep):
    keeper = keep(4, max_age=500.0)
    assert keeper.next(5.0) is None
    assert keeper.ready_in(5.0) == 5
    visit(keeper, 100.0, text(OLD))
    asked = {keeper.rows[keeper.next(400.0, busy=[0]).place].url for _ in range(2)}
    assert asked == {"http://h1.test/d/1", "http://h1.test/d/3"}
    assert keeper.next(400.0, busy=[0, 1]) is None
    assert keeper.rows[keeper.next(505.0).place].last_seen == 0, "older than max_age"


def test_robots_cost_nothing(keep):
    keeper = keep(1, budget=1)
    errand = keeper.next(100.0)
    keeper.take_back(errand, 100.0)
    assert (keeper.run.sent, keeper.out) == (0, 0)
    assert keeper.next(100.0) is None
    assert keeper.next(100_000.0) is not None


def test_only_new_links_are_reported(keep):
    keeper = keep(1, follow=True)
    _, first = visit(keeper, 100.0, text(NEW, links=["http://a.test/1"]))
    links = ["http://a.test/1", "http://a.test/2"]
    _, second = visit(keeper, 200.0, text(OLD, links=links))
    _, third = visit(keeper, 300.0, text(NEW, links=links))
    assert (first.found, second.found, third.found) == ([], ["http://a.test/2"], [])


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_is_resumed(keep, policy):
    keeper = keep(6, policy=policy, min_age=0.0, retry=2.0)
    for number in range(40):
        words = NEW if number % 3 else OLD
        visit(keeper, 100.0 + number, text(words) if number % 7 else failed())
    keeper.end(200.0, finished=False)
    again = keep(6, now=300.0, policy=policy, min_age=0.0, retry=2.0)
    assert again.run.resumed
    assert again.run.sent == 40
    assert again.pages.changes.tolist() == keeper.pages.changes.tolist()
    assert again.policy.select(400.0, np.ones(6, bool)) in range(6)


def test_statistics_reach_the_policies(keep):
    keeper = keep(6, policy="ts", min_age=0.0)
    for number in range(10):
        visit(keeper, 100.0 + number, text(NEW if number % 2 else OLD))
    bandit = keeper.policy.bandit
    again = keep(6, now=300.0, policy="ts").policy.bandit
    assert again.changed.tolist() == bandit.changed.tolist()
    assert again.unchanged.tolist() == bandit.unchanged.tolist()
    assert again.changed.sum() > 2


def test_network_of_fgdqn_is_kept(keep):
    keeper = keep(6, policy="fgdqn", min_age=0.0)
    for number in range(40):
        visit(keeper, 100.0 + number, text(NEW if number % 2 else OLD))
    keeper.end(200.0, finished=False)
    learnt = keeper.policy.bandit.dump()
    again = keep(6, now=300.0, policy="fgdqn").policy.bandit
    assert again.dump() == learnt
    assert again.slots == 40
