import numpy as np
import pytest
from judged import judged
from test_crawl import A, book, crawl_of

from tres_scrapy.crawl import verdict as revision
from tres_scrapy.frontier.feature import ACTION
from tres_scrapy.page.copies import SKETCH

LINKS = [f"http://s{n}.test/" for n in range(6)]


@pytest.fixture
def crawl(monkeypatch):
    """A crawl with six waiting links, the last the best; three may be described again at once."""
    monkeypatch.setattr(revision, "DESCRIBED_SAMPLES", 3)
    crawl = crawl_of(A)
    book(crawl, crawl.next().row, 1.0, *LINKS)
    crawl.store["probability"][np.arange(1, 7)] = np.linspace(0.1, 0.6, 6).astype(np.float32)
    return crawl


def actions_of(crawl):
    return crawl.store.features(np.arange(1, 7))[:, ACTION].tolist()


def test_changed_topic_takes_the_best_links_once(crawl):
    taken = crawl.revision.take
    assert taken().tolist() == []
    crawl.revision.note("first", described=False)
    assert taken().tolist() == [4, 5, 6]
    crawl.revision.give_back()  # the page was not judged
    assert taken().tolist() == [4, 5, 6]
    assert taken().tolist() == []
    crawl.revision.note("third", described=True)  # the second came before it
    assert taken().tolist() == []
    crawl.revision.note("fourth", described=False)
    assert taken().tolist() == [4, 5, 6]


def test_only_waiting_links_are_described_again(crawl):
    leased = crawl.next().row
    new = np.array([[1, 0, 0.25], [0, 1, 0.5]], dtype=np.float32)
    crawl.revise(np.array([leased, 6]), new)
    assert actions_of(crawl) == [[0, 0, 0]] * 5 + [[0, 1, 0.5]]


def test_earlier_pages_are_asked_about_once(crawl):
    asks, note = crawl.revision.asks, crawl.revision.note
    assert not asks()
    note("first", described=False)
    assert asks()
    assert not asks()
    crawl.revision.give_back()  # the page was not judged
    assert asks()
    note("second", described=True)
    assert asks()
    crawl.revision.restore("second", "second")
    assert not asks()


def test_policy_learns_what_the_topic_says_now(crawl, monkeypatch):
    told = []
    monkeypatch.setattr(crawl.policy, "relearn", told.append)
    marks = [bytes([number]) * SKETCH for number in (1, 2, 3)]
    for mark in marks[:2]:
        row = crawl.next().row
        crawl.book(row, judged(0.0, mark=mark + b"words"))
    again = dict(zip((mark.hex() for mark in marks), (0.9, 0.1, 0.9), strict=True))
    crawl.decide(crawl.next().row, judged(1.0, model="second")._replace(again=again))
    ((first, second),) = (lessons.items() for lessons in told)  # the first had no model
    assert first[1] == (1.0, 1.0)
    assert second[1][0] == 0.0 < second[1][1] < 0.5
    crawl.decide(crawl.next().row, judged(1.0, model="second"))
    assert len(told) == 1


def test_trusted_seed_keeps_its_reward(monkeypatch):
    crawl, told = crawl_of(A, trusted_seeds=True), []
    monkeypatch.setattr(crawl.policy, "relearn", told.append)
    mark = bytes(SKETCH)
    crawl.book(crawl.next().row, judged(0.0, mark=mark))
    crawl.relearn({mark.hex(): 0.1})
    assert told == [{}]
