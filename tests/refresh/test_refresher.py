"""The rules of a refresh run, with fixed answers and a fixed clock."""

from dataclasses import replace

import numpy as np
import pytest

from tres_scrapy.refresh.collection import KnownPage
from tres_scrapy.refresh.main_text import Reading, copy_of
from tres_scrapy.refresh.refresher import Refresher
from tres_scrapy.refresh.settings import RefresherOptions
from tres_scrapy.refresh.store import Host, Store
from tres_scrapy.refresh.visit import PageAnswer

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
    """Return a function that opens a refresher over the same store, as a new process would."""
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


def visit(refresher, now, answer):
    """Visit a page and allow another visit, as if each visit were a separate run."""
    request = refresher.next(now)
    report = refresher.book(request, answer, now)
    refresher._asked.clear()
    refresher._ready[request.place] = refresher._ready_at(refresher.rows[request.place])
    return request, report


def failed(status=None, error="TimeoutError"):
    return PageAnswer(status, error)


@pytest.mark.parametrize(
    ("words", "change", "changes"),
    [(OLD, "unchanged", 0), (NEAR, "minor", 0), (NEW, "changed", 1)],
)
def test_text_decides(keep, words, change, changes):
    refresher = keep(1)
    _, report = visit(refresher, 100.0, text(words))
    assert (report.change, report.changes, report.age) == (change, changes, 100.0)
    (row,) = refresher.store.pages()
    assert (row.changes, row.quiet) == (changes, 1 - changes)
    assert row.changed_time + row.quiet_time == 100
    assert row.last_seen == 100
    assert (report.text != "") is (change != "unchanged")


def test_unfetched_page_comes_first(keep):
    refresher = keep(2, copies=False)
    assert visit(refresher, 0.0, text(OLD))[1].change == "new"
    assert visit(refresher, 0.0, text(OLD))[1].change == "new"
    assert refresher.store.pages()[0].quiet == 0
    assert refresher.next(0.0) is None, "min_age"


def test_validators_are_sent_once_known(keep):
    refresher = keep(1)
    refresher._validators._random = Drawn(0.9)  # no audit
    first, _ = visit(refresher, 100.0, text(OLD, etag='"1"', modified="Fri"))
    assert not first.conditional
    second, report = visit(refresher, 200.0, PageAnswer(304))
    assert (second.etag, second.modified) == ('"1"', "Fri")
    assert report.change == "unchanged"
    assert refresher.store.pages()[0].quiet_time == 200


def test_unrequested_304_is_an_error(keep):
    refresher = keep(1)
    assert visit(refresher, 100.0, PageAnswer(304, "HTTP 304"))[1].change == "error"


def test_lying_validators_are_distrusted(keep):
    refresher = keep(1)
    now = 0.0
    for words in (OLD, NEW):
        now += 100
        visit(refresher, now, text(words, etag='"same"'))
    assert refresher.store.hosts() == {"h0.test": Host(0, 1)}
    for _ in range(20):
        now += 100
        assert not visit(refresher, now, text(NEW, etag='"same"'))[0].conditional


def test_validators_are_tried_now_and_then(keep):
    refresher = keep(1, budget=1_000)
    conditional = []
    for number in range(200):
        request, _ = visit(refresher, 100.0 * (number + 1), text(OLD, etag='"1"'))
        conditional.append(request.conditional)
    assert 100 < sum(conditional) < 185


def test_errors_delay_the_next_try(keep):
    refresher = keep(1)
    now, tried = 100.0, []
    for _ in range(4):
        tried.append(now)
        _, report = visit(refresher, now, failed())
        assert (report.change, report.error) == ("error", "TimeoutError")
        assert refresher.next(now) is None
        now += refresher.ready_in(now)
    assert tried == [100, 150, 250, 450]
    (row,) = refresher.store.pages()
    assert (row.changes, row.quiet, row.last_seen, row.gone) == (0, 0, 0, False)
    visit(refresher, now, text(OLD))
    assert refresher.store.pages()[0].errors == 0


def test_server_errors_never_mean_gone(keep):
    refresher = keep(1)
    now = 100.0
    for _ in range(12):
        assert visit(refresher, now, failed(503, "HTTP 503"))[1].change == "error"
        now += refresher.ready_in(now)


@pytest.mark.parametrize("status", [404, 410])
def test_gone_page_may_return(keep, status):
    refresher = keep(1, grace=3)
    now, said = 100.0, []
    for _ in range(3):
        said.append(visit(refresher, now, failed(status, f"HTTP {status}"))[1].change)
        now += refresher.ready_in(now)
    assert said == ["error", "error", "gone"]
    assert refresher.store.pages()[0].gone
    assert visit(refresher, now, text(NEW))[1].change == "new"
    assert not refresher.store.pages()[0].gone


def test_soft_404_is_a_miss(keep):
    refresher = keep(1, grace=1)
    answer = text("Page not found")
    answer = replace(answer, reading=replace(answer.reading, missing=True))
    assert visit(refresher, 100.0, answer)[1].change == "gone"


def test_open_run_asks_once(keep):
    refresher = keep(2, budget=9, min_age=0.0)
    refresher.book(refresher.next(100.0), text(OLD), 100.0)
    refresher = keep(2, now=200.0, budget=9, min_age=0.0)
    request = refresher.next(300.0)
    refresher.book(request, failed(), 300.0)
    assert refresher.next(1e9) is None
    assert refresher.ready_in(1e9) == float("inf")


def test_budget_is_never_exceeded(keep):
    refresher = keep(3, budget=2)
    assert refresher.next(100.0) is not None
    assert refresher.next(100.0) is not None
    assert refresher.next(100.0) is None
    assert refresher.run.spent(100.0)


def test_requests_are_spread_over_the_horizon(keep):
    refresher = keep(5, now=1_000.0, budget=5, horizon=50.0)
    sent = []
    now = 1_000.0
    while not refresher.run.spent(now):
        if refresher.next(now) is not None:
            sent.append(now)
        now += refresher.run.wait(now)
    assert sent == [1_000, 1_010, 1_020, 1_030, 1_040]
    assert refresher.run.wait_for_end(1_040.0) == 10


def test_late_run_keeps_its_time(keep):
    refresher = keep(2, budget=2, horizon=50.0)
    refresher.run.start(500.0)
    assert refresher.next(500.0) is not None
    refresher.run.start(900.0)
    assert refresher.run.wait(500.0) == 25


def test_killed_run_continues(keep):
    refresher = keep(3, now=100.0, budget=4, horizon=400.0)
    visit(refresher, 100.0, text(NEW))
    refresher.next(250.0)  # and killed before it is answered
    refresher = keep(3, now=260.0, budget=4, horizon=400.0)
    assert (refresher.run.resumed, refresher.lost, refresher.run.sent) == (True, 1, 2)
    assert refresher.pages.changes.sum() == 1
    assert refresher.run.wait(260.0) == 40
    sent = [refresher.next(now) for now in (300.0, 400.0, 400.0)]
    assert [request is not None for request in sent] == [True, True, False]


def test_other_wishes_begin_another_run(keep):
    keep(3, now=100.0, budget=4)
    assert keep(3, now=200.0, budget=4).run.resumed
    assert not keep(3, now=300.0, budget=5).run.resumed
    keep(3, now=400.0, budget=5, horizon=10.0)
    assert not keep(3, now=500.0, budget=5, horizon=10.0).run.resumed, "its time is over"


def test_open_pace_follows_the_runs(keep):
    refresher = keep(3, now=0.0, budget=10)
    assert refresher.run.pace == pytest.approx(10 / 86_400)
    refresher.store.end_run(refresher.run.id, 5.0)
    assert keep(3, now=3_600.0, budget=10).run.pace == pytest.approx(10 / 3_600)


def test_items_wait_until_they_are_delivered(keep):
    refresher = keep(1)
    _, report = visit(refresher, 100.0, text(NEW))
    assert keep(1, now=200.0).store.outbox() == [report]


def test_ages_and_busy_hosts_bind(keep):
    refresher = keep(4, max_age=500.0)
    assert refresher.next(5.0) is None
    assert refresher.ready_in(5.0) == 5
    visit(refresher, 100.0, text(OLD))
    asked = {refresher.rows[refresher.next(400.0, busy=[0]).place].url for _ in range(2)}
    assert asked == {"http://h1.test/d/1", "http://h1.test/d/3"}
    assert refresher.next(400.0, busy=[0, 1]) is None
    assert refresher.rows[refresher.next(505.0).place].last_seen == 0, "older than max_age"


def test_robots_cost_nothing(keep):
    refresher = keep(1, budget=1)
    request = refresher.next(100.0)
    refresher.take_back(request, 100.0)
    assert (refresher.run.sent, refresher.out) == (0, set())
    assert refresher.next(100.0) is None
    assert refresher.next(100_000.0) is not None


def test_only_new_links_are_reported(keep):
    refresher = keep(1, follow=True)
    _, first = visit(refresher, 100.0, text(NEW, links=["http://a.test/1"]))
    links = ["http://a.test/1", "http://a.test/2"]
    _, second = visit(refresher, 200.0, text(OLD, links=links))
    _, third = visit(refresher, 300.0, text(NEW, links=links))
    assert (first.found, second.found, third.found) == ([], ["http://a.test/2"], [])


def test_statistics_are_resumed(keep):
    refresher = keep(6, min_age=0.0, retry=2.0)
    for number in range(40):
        words = NEW if number % 3 else OLD
        visit(refresher, 100.0 + number, text(words) if number % 7 else failed())
    again = keep(6, now=300.0, min_age=0.0, retry=2.0)
    assert again.run.resumed
    assert again.run.sent == 40
    assert again.pages.changes.tolist() == refresher.pages.changes.tolist()
    assert again.policy.select(400.0, np.ones(6, bool)) in range(6)
