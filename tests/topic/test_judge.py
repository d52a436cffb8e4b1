import threading
from functools import partial

import numpy as np
import pytest

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.topic.judge import Judge, Source, judge_pages
from tres_scrapy.topic.pack import Judgement

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
        return [Judgement(0.9 if "good" in page.text else 0.1, no_links) for page in pages]


@pytest.fixture
def pack():
    return Pack()


def judge_by(pack):
    return Judge(pack, partial(judge_pages, pack, ReadingLimits(links=10)))


@pytest.fixture
def judge(pack):
    judge = judge_by(pack)
    yield judge
    pack.go_on.set()
    judge.close()


def test_waiting_pages_are_judged_together(pack, judge):
    first = judge.submit(GOOD)
    pack.started.wait(10)
    waiting = [judge.submit(saying(word)) for word in ("good", "poor")]
    pack.go_on.set()
    assert [future.result(10).judgement.probability > 0.5 for future in (first, *waiting)] == [
        True,
        True,
        False,
    ]
    assert pack.batches == [["http://a.test/"], ["http://good.test/", "http://poor.test/"]]
    assert pack.threads == {"tres-judge"}


def test_page_waits_for_those_in_flight(pack, monkeypatch):
    monkeypatch.setattr("tres_scrapy.topic.judge.PAUSE", 60)
    judge = Judge(pack, partial(judge_pages, pack, ReadingLimits(links=10)), together=2)
    pack.go_on.set()
    for words in (("good", "poor"), ("poor", "fine")):
        assert all(future.result(30) for future in [judge.submit(saying(word)) for word in words])
    judge.close()
    assert list(map(len, pack.batches)) == [2, 2]


def test_end_does_not_wait_for_others(pack, monkeypatch):
    monkeypatch.setattr("tres_scrapy.topic.judge.PAUSE", 60)
    judge = Judge(pack, partial(judge_pages, pack, ReadingLimits(links=10)), together=8)
    pack.go_on.set()
    future = judge.submit(GOOD)
    judge.close()
    assert future.done()


def test_bad_page_spares_the_others(pack, judge):
    first = judge.submit(GOOD)
    pack.started.wait(10)
    bad, good = (judge.submit(saying(word)) for word in ("bad", "good"))
    pack.go_on.set()
    assert first.result(10).judgement.probability > 0.5
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
    assert good.result(10).judgement.probability > 0.5


def test_close_waits_for_what_was_submitted(pack):
    judge = judge_by(pack)
    pack.go_on.set()
    futures = [judge.submit(GOOD) for _ in range(20)]
    judge.close()
    assert all(future.done() for future in futures)
