import threading
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.topic import judge as judge_module
from tres_scrapy.topic.judge import Judge, Source, judge_pages
from tres_scrapy.topic.pack import Judged

GOOD = Source(b"<p>good</p>", "http://a.test/")


def saying(word):
    return Source(f"<p>{word}</p>".encode(), f"http://{word}.test/")


class Pack:
    """Finds pages relevant if their text says so; records its batches and thread."""

    def __init__(self):
        self.batches = []
        self.threads = set()
        self.started = threading.Event()
        self.go_on = threading.Event()

    def judge(self, pages):
        self.threads.add(threading.current_thread().name)
        self.batches.append([page.url for page in pages])
        self.started.set()
        self.go_on.wait(10)
        if any("bad" in page.text for page in pages):
            raise RuntimeError("bad page")
        no_links = np.zeros((0, 3), dtype=np.float32)
        return [Judged(page, 0.9 if "good" in page.text else 0.1, no_links) for page in pages]


@pytest.fixture
def pack():
    return Pack()


def judge_by(pack):
    return Judge(pack, partial(judge_pages, pack, limits=ReadingLimits(links=10)))


@pytest.fixture
def judge(pack):
    judge = judge_by(pack)
    yield judge
    pack.go_on.set()
    judge.close()


def test_wall_is_named(pack):
    pack.go_on.set()
    wall = Source(b"<title>Soup</title><p>Are you a robot?", "http://a.test/")
    judged = judge_pages(pack, [GOOD, wall], limits=ReadingLimits(links=10))
    assert [each.wall for each in judged] == ["", "wall_challenge"]


def test_waiting_pages_are_judged_together(pack, judge):
    first = judge.submit(GOOD)
    pack.started.wait(10)
    waiting = [judge.submit(saying(word)) for word in ("good", "poor")]
    pack.go_on.set()
    assert [future.result(10).probability > 0.5 for future in (first, *waiting)] == [
        True,
        True,
        False,
    ]
    assert pack.batches == [["http://a.test/"], ["http://good.test/", "http://poor.test/"]]
    assert pack.threads == {"tres-judge"}


def test_page_waits_for_those_in_flight(pack, monkeypatch):
    monkeypatch.setattr("tres_scrapy.topic.judge.PAUSE", 60)
    judge = Judge(pack, partial(judge_pages, pack, limits=ReadingLimits(links=10)), together=2)
    pack.go_on.set()
    for words in (("good", "poor"), ("poor", "fine")):
        assert all(future.result(30) for future in [judge.submit(saying(word)) for word in words])
    judge.close()
    assert list(map(len, pack.batches)) == [2, 2]


def test_end_does_not_wait_for_others(pack, monkeypatch):
    monkeypatch.setattr("tres_scrapy.topic.judge.PAUSE", 60)
    judge = Judge(pack, partial(judge_pages, pack, limits=ReadingLimits(links=10)), together=8)
    pack.go_on.set()
    future = judge.submit(GOOD)
    judge.close()
    assert future.done()


def test_bad_page_spares_the_others(pack, judge):
    first = judge.submit(GOOD)
    pack.started.wait(10)
    bad, good = (judge.submit(saying(word)) for word in ("bad", "good"))
    pack.go_on.set()
    assert first.result(10).probability > 0.5
    assert good.result(10).page.url == "http://good.test/"
    with pytest.raises(RuntimeError, match="bad page"):
        bad.result(10)


def test_unwanted_verdict_does_no_harm(pack, judge):
    first = judge.submit(GOOD)
    pack.started.wait(10)
    unwanted, good = (judge.submit(GOOD) for _ in range(2))
    assert unwanted.cancel()
    pack.go_on.set()
    assert first.result(10)
    assert good.result(10).probability > 0.5


class Held:
    """A judge that answers with its own number, and with one page waits to be let go."""

    def __init__(self, number, error=None):
        self.number = number
        self.error = error
        self.batches = []
        self.started = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, sources):
        self.batches.append([source.url for source in sources])
        self.started.set()
        assert self.go_on.wait(10)
        if self.error is not None:
            raise self.error
        return [self.number for _ in sources]


@pytest.fixture
def two(monkeypatch):
    """Two judges and who calls them, with two pages if two wait."""
    monkeypatch.setattr("tres_scrapy.topic.judge.PAUSE", 0)
    held = Held(0), Held(1)
    judge = Judge(None, *held, together=2)
    yield judge, held
    for each in held:
        each.go_on.set()
    judge.close()


def busy(judge, held):
    """Give a page to each of two judges; return their futures, and the judges in that order."""
    first = judge.submit(saying("first"))
    while not (started := [each for each in held if each.started.wait(0.01)]):
        pass
    (other,) = {*held} - {*started}
    second = judge.submit(saying("second"))
    assert other.started.wait(10)
    return [first, second], [*started, other]


def test_idle_judge_gets_the_next_page(two):
    judge, held = two
    futures, order = busy(judge, held)
    assert [each.batches for each in order] == [[["http://first.test/"]], [["http://second.test/"]]]
    waiting = [judge.submit(saying(word)) for word in ("third", "fourth")]
    order[1].go_on.set()
    assert [future.result(10) for future in (futures[1], *waiting)] == [order[1].number] * 3
    assert order[1].batches[1:] == [["http://third.test/", "http://fourth.test/"]]
    assert not futures[0].done()


def test_error_of_one_judge_spares_the_other(two):
    judge, held = two
    futures, order = busy(judge, held)
    order[0].error = RuntimeError("it ended")
    for each in order:
        each.go_on.set()
    with pytest.raises(RuntimeError, match="it ended"):
        futures[0].result(10)
    assert futures[1].result(10) == order[1].number


def test_two_judges_share_what_waits(monkeypatch):
    monkeypatch.setattr("tres_scrapy.topic.judge.PAUSE", 60)
    held = Held(0), Held(1)
    judge = Judge(None, *held, together=4)
    futures = [judge.submit(saying(f"page{number}")) for number in range(8)]
    assert all(each.started.wait(10) for each in held)
    for each in held:
        each.go_on.set()
    assert sorted(future.result(30) for future in futures) == [0, 0, 0, 0, 1, 1, 1, 1]
    judge.close()
    assert sorted(len(batch) for each in held for batch in each.batches) == [4, 4]


@given(pages=st.integers(0, 60), judges=st.integers(1, 4), together=st.integers(1, 8))
def test_each_page_is_judged_once(pages, judges, together):
    judged = []

    def note(sources):
        judged.extend(source.url for source in sources)
        return [source.url for source in sources]

    judge = Judge(None, *[note] * judges, together=together)
    futures = [judge.submit(saying(f"page{number}")) for number in range(pages)]
    judge.close()
    assert [future.result(0) for future in futures] == [
        f"http://page{number}.test/" for number in range(pages)
    ]
    assert len(judged) == pages


def test_close_waits_for_what_was_submitted(pack):
    judge = judge_by(pack)
    pack.go_on.set()
    futures = [judge.submit(GOOD) for _ in range(20)]
    judge.close()
    assert all(future.done() for future in futures)


def test_crawl_that_ends_does_not_wait_for_a_busy_judge(pack, monkeypatch):
    monkeypatch.setattr(judge_module, "PATIENCE", 0.05)
    release = threading.Event()

    def busy(sources):
        release.wait(60)
        raise RuntimeError("too late")

    judge = Judge(pack, busy)
    future = judge.submit(GOOD)
    judge.close()
    assert not future.done()
    release.set()
