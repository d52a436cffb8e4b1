"""The state of a crawl of one or more shards, its speed, and the numbers of the live page."""

from types import SimpleNamespace

import pytest

from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.live import view as module
from tres_scrapy.live.state import WINDOW, CrawlState, Monitor, failures
from tres_scrapy.live.view import FAREWELL, SENDING, PageState

FIGURES = {
    "relevant_pages": 5,
    "relevant_domains": 2,
    "frontier_size": 70,
    "leaves": 4,
    "failures/robots": 1,
    "failures/http_404": 2,
    "outbox": 9,
    "phase": "exploration",
    "updates": 40,
}
FIRST = {
    **FIGURES,
    "pages": 10,
    "leased": 2,
    "under_way": 2,
    "last_q": 0.5,
    "state": "running",
    "report_age": 0.2,
}
SECOND = {
    **FIGURES,
    "pages": 30,
    "leased": 1,
    "under_way": 0,
    "last_q": 0.9,
    "state": "idle",
    "updates": 38,
}
STEERING = SimpleNamespace(state="running", cap=Cap(10, 10))


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(module, "monotonic", lambda: clock.now)
    return clock


def page_of(state):
    config = Config.from_settings({"TRES_TOPIC": "food"})
    return PageState(config, STEERING, lambda: Monitor(state))


def measured(*marks, limit=None):
    """Return a monitor that saw so many pages at these times."""
    times = iter([time for time, _ in marks])
    monitor = Monitor(CrawlState({}), lambda: next(times))
    for _, pages in marks:
        monitor.take(CrawlState({0: {"pages": pages}}, limit))
    return monitor


def test_figures_are_sums():
    figures = CrawlState({0: FIRST, 1: SECOND}, 100, 2).figures()
    assert (figures["pages"], figures["relevant_pages"], figures["frontier_size"]) == (40, 10, 140)
    assert figures["harvest_rate"] == 0.25
    assert (figures["leased"], figures["choices"]) == (3, 40 + 6 + 3)
    assert failures(figures) == 6
    assert figures["updates"] == 40, "the one learner's"


def test_page_shows_one_crawl():
    found = page_of(CrawlState({0: FIRST | {"offline": True}}, 100))()
    assert (found["topic"], found["pages"], found["limit"]) == ("food", 10, 100)
    assert (found["status"], found["offline"], found["max"]) == ("running", True, "10")
    assert (found["phase"], found["leaves"]) == ("exploration", 4)
    assert "shards" not in found


def test_crawl_waits_until_its_last_shard_does():
    times = [{"opens_at": 50.0}, {"opens_at": 40.0}, {}]
    assert CrawlState({0: FIRST | times[0], 1: SECOND | times[1]}, 100, 2).opens_at == 40.0
    assert CrawlState({0: FIRST | times[0], 1: SECOND | times[2]}, 100, 2).opens_at == 0
    assert page_of(CrawlState({0: FIRST | times[0]}, 100))()["opens_at"] == 50.0


def test_page_shows_sums_of_shards():
    found = page_of(CrawlState({0: FIRST, 1: SECOND}, 100, 3))()
    assert (found["pages"], found["limit"], found["relevant"]) == (40, 100, 10)
    assert (found["harvest"], found["domains"], found["frontier"]) == (0.25, 4, 140)
    assert (found["failures"], found["under_way"], found["leaves"]) == (6, 2, 8)
    assert (found["offline"], found["phase"]) == (False, "trees of 3 shards")


def test_each_shard_has_a_row():
    first, second, third = CrawlState({0: FIRST, 1: SECOND}, 100, 3).rows()
    assert (first["state"], second["state"]) == ("running", "idle")
    assert third == {"shard": 2, "state": "starting"}
    assert (first["pages"], first["harvest"], first["q"]) == (10, 0.5, 0.5)
    assert (first["failures"], first["outbox"], first["age"], second["age"]) == (3, 9, 0.2, None)


def test_crawl_without_tree_has_no_leaves():
    assert page_of(CrawlState({0: {"pages": 0}}))()["leaves"] is None


def test_end_waits_for_no_closed_page(clock):
    page = page_of(CrawlState({0: FIRST}))
    page.end("all pages are fetched", ["a.html"])
    assert page.is_told
    assert page()["end"] == {"reason": "all pages are fetched", "files": ["a.html"]}


def test_end_waits_for_an_open_page(clock):
    page = page_of(CrawlState({0: FIRST}))
    page()
    clock.now += 1
    page.end("", [])
    assert not page.is_told
    clock.now += 1
    page()
    assert not page.is_told
    clock.now += SENDING + 0.1
    assert page.is_told


def test_end_waits_for_a_while(clock):
    page = page_of(CrawlState({0: FIRST}))
    page()
    page.end("", [])
    clock.now += FAREWELL - 0.1
    assert not page.is_told
    clock.now += 0.2
    assert page.is_told


def test_one_mark_has_no_speed():
    monitor = measured((100.0, 7), limit=50)
    assert (monitor.recent, monitor.overall, monitor.left) == (0.0, 0.0, None)


def test_earlier_run_does_not_count():
    monitor = measured((5.0, 1000), (15.0, 1030), limit=1090)
    assert monitor.overall == monitor.recent == 3.0
    assert monitor.left == 20.0
    assert monitor.since == " since this start"


def test_speed_uses_last_window():
    marks = [(float(second), min(second, 100)) for second in range(200)]
    monitor = measured(*marks, limit=1000)
    assert monitor.recent == pytest.approx((100 - 199 + WINDOW) / WINDOW if WINDOW > 99 else 0.0)
    assert monitor.overall == pytest.approx(100 / 199)
    assert monitor.left is None


def test_unlimited_crawl_has_no_end():
    assert measured((0.0, 0), (1.0, 10)).left is None
    assert measured((0.0, 0), (1.0, 10), limit=5).left == 0.0


def test_speed_counts_from_when_all_report():
    times = iter([1.0, 11.0])
    monitor = Monitor(CrawlState({}, 500, 2), lambda: next(times))
    monitor.take(CrawlState({0: {"pages": 90}}, 500, 2))
    for pages in (100, 150):
        monitor.take(CrawlState({0: {"pages": pages}, 1: {"pages": pages}}, 500, 2))
    assert (monitor.recent, monitor.left) == (10.0, 20.0)


def test_progress_is_short_in_a_terminal():
    monitor = Monitor(CrawlState({0: FIRST}, 100))
    assert monitor.described(short=True) == [
        "10/100 pages",
        "",
        "harvest 50.0 %",
        "domains 2",
        "0.0 pages/s",
        "frontier 70 in 4 leaves",
    ]
    assert monitor.described()[2:] == [
        "harvest rate 50.0 %",
        "2 relevant domains",
        "0.0 pages/s",
        "frontier 70",
    ]


@pytest.mark.parametrize(
    ("pages", "relevant", "domains", "bound", "warned"),
    [
        (19, 0, 0, 0, []),
        (20, 0, 0, 0, ["Hardly a page fits: 0 of 20 pages are relevant"]),
        (20, 2, 1, 0, []),
        (60, 11, 1, 0, []),
        (60, 12, 1, 0, ["All 12 relevant pages are of one site"]),
        (60, 12, 2, 0, []),
        (60, 12, 1, 3, []),  # only links to that site were allowed
        (400, 14, 1, 0, ["Hardly a page fits", "All 14 relevant pages are of one site"]),
    ],
)
def test_crawl_that_looks_wrong_is_warned_of(pages, relevant, domains, bound, warned):
    figures = {"pages": pages, "relevant_pages": relevant, "relevant_domains": domains}
    halves = {name: value // 2 for name, value in figures.items()}
    rest = {name: value - halves[name] for name, value in figures.items()}
    rest["out_of_scope/allowed_domains"] = bound
    found = CrawlState({0: halves, 1: rest}, count=2).warnings()
    assert len(found) == len(warned)
    assert all(text.startswith(each) for text, each in zip(found, warned, strict=True))


@pytest.mark.parametrize(("relevant", "echoes", "times"), [(19, 19, 0), (20, 6, 0), (20, 7, 1)])
def test_pages_put_together_from_other_sites_are_warned_of(relevant, echoes, times):
    figures = {"pages": 40, "relevant_pages": relevant, "relevant_domains": 9, "echoes": echoes}
    said = f"{echoes} of {relevant} relevant pages are put together from phrases of other sites"
    assert sum(text.startswith(said) for text in CrawlState({0: figures}).warnings()) == times
