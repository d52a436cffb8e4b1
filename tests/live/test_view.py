import json
from types import SimpleNamespace

import numpy as np
import pytest
from judged import judged, told

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.view import DRAWING_COST, DRAWING_PERIOD, FOUND_PAGES, RECENT_PAGES, View
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.run.writer import Writer

PAGES = 50


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The record of a crawl of TRES over 50 pages, one of them hostile."""
    store = SampleStore(DomainLedger())
    setup = PolicyInputs(learning=LearningOptions(exploration_steps=5, batch_size=4))
    crawl = Crawl(store, make_policy("tres", store, setup))
    crawl.add_seeds(Outlinks(["http://h0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    path = tmp_path_factory.mktemp("run") / "a.run"
    writer = Writer.open(path, crawl, {"topic": "food"}, {}, 0.0)
    random = np.random.default_rng(0)
    for step in range(PAGES):
        row = crawl.next().row
        urls = [f"http://h{step}.test/{i}" for i in range(4)]
        actions = random.random((4, 3), dtype=np.float32)
        anchors = ["<script>alert(1)</script>"] * 4
        booking = crawl.book(row, judged(float(step % 2)), Outlinks(urls, anchors, actions))
        scores = {"food": step % 2, "sports": 0.25}
        found = told(booking, "</script><b>", f"Soup {step}%", step % 2, scores=scores)
        writer.note(found, float(step))
    writer.flush(float(PAGES))
    yield path
    writer.close(float(PAGES), "finished")


@pytest.fixture
def clock():
    return SimpleNamespace(now=100.0)


@pytest.fixture
def answering(tmp_path):
    return Answering(tmp_path / "a.answers.txt", "Noted in")


@pytest.fixture
def view(record, answering, clock):
    view = View(record, answering, lambda: clock.now)
    yield view
    view.close()


def test_state_sends_only_new_pages(view):
    state = json.loads(view.state({"pages": PAGES}, -1))
    assert (state["pages"], state["step"]) == (PAGES, PAGES)
    newest = range(PAGES, PAGES - RECENT_PAGES, -1)
    assert [page["step"] for page in state["recent"]] == list(newest)
    assert state["recent"][0]["title"] == "</script><b>"
    assert state["recent"][0]["scores"] == {"food": 1.0, "sports": 0.25}
    assert state["recent"][0]["why"].startswith(
        ("Highest Q: ", "New domain. Q ", "Highest sum of Q and bonus: Q ")
    )
    more = json.loads(view.state({}, PAGES - 2))
    assert [page["step"] for page in more["recent"]] == [PAGES, PAGES - 1]
    nothing = json.loads(view.state({}, PAGES))
    assert nothing == {"recent": [], "step": PAGES, "asked": 0, "holder": None}


def found(view, words, before=-1):
    return json.loads(view.relevant(before, words))["pages"]


def test_relevant_pages_are_searched(view):
    newest = found(view, "")
    assert len(newest) == FOUND_PAGES
    assert all(page["outcome"] == "relevant" for page in newest)
    older = found(view, "", newest[-1]["step"])
    assert newest[-1]["step"] > older[0]["step"]
    (only,) = found(view, "  SOUP 49%  ")
    assert (only["text"], only["title"]) == ("Soup 49%", "</script><b>")
    assert found(view, "soup 4_%") == found(view, "'\" -- ;") == []


def test_answer_shows_in_the_page(view):
    url = found(view, "49%")[0]["url"]
    assert json.loads(view.answer(url, relevant=False))["said"].startswith("Noted in ")
    assert found(view, "49%")[0]["answer"] is False
    assert json.loads(view.state({}, PAGES - 1))["recent"][0]["answer"] is False


def test_page_shows_features_and_rivals(view):
    page = json.loads(view.page(PAGES))
    assert [feature["name"] for feature in page["features"]][3] == "keyword in the URL"
    assert all(0 <= feature["value"] <= 1 for feature in page["features"])
    assert page["rivals"][0]["anchor"] == "<script>alert(1)</script>"
    steps = [before["step"] for before in page["trail"]]
    assert 0 < len(steps) <= 8, "the last of the way"
    assert steps == sorted(steps)
    assert steps[-1] < PAGES
    assert view.page(0) is view.page(PAGES + 1) is None


def test_figures_are_redrawn_rarely(view, clock, monkeypatch):
    drawn = []
    draw = View._draw
    monkeypatch.setattr(View, "_draw", lambda view: drawn.append(clock.now) or draw(view))
    first = json.loads(view.figures(-1))
    assert first["step"] == PAGES
    assert {"harvest", "tree", "frontier"} <= {chart["name"] for chart in first["charts"]}
    assert view.figures(PAGES) is None
    clock.now += 0.9 * DRAWING_PERIOD
    view.figures(-1)
    assert drawn == [100.0]
    clock.now += 0.2 * DRAWING_PERIOD
    view.figures(-1)
    assert len(drawn) == 2


def test_slow_figures_are_drawn_seldom(record, answering, monkeypatch):
    times = iter([0.0, 0.0, 0.0, 2.0, 2.0 + DRAWING_COST * 2 - 1])
    view = View(record, answering, lambda: next(times))
    assert view.figures(-1) is not None
    monkeypatch.setattr(View, "_draw", lambda view: pytest.fail("drawn too soon"))
    assert view.figures(-1) is not None
    view.close()


def test_unreadable_record_is_one_line(tmp_path, answering):
    view = View(tmp_path / "none.run", answering)
    with pytest.raises(RecordError, match=r"there is no record"):
        view.state({}, -1)
    view.close()
