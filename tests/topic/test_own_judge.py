"""A function of the user's own that judges pages."""

import sys
from contextlib import closing
from types import ModuleType

import numpy as np
import pytest
from conftest import PROJECT

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.crawl.assembly import threshold_of
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic.judge import Source
from tres_scrapy.topic.judge_process import PageError, Task, Worker, WorkerError
from tres_scrapy.topic.pack import OwnJudge, Pack
from tres_scrapy.url.message import TresError

FOOD = PROJECT / "models" / "food"
RECIPE = "examples.recipe_rule:recipe"
SOUP = Page("http://a.test/", "Soup", "Chop an onion. Add 2 cups of water and boil.", ())
ENGINE = Page("http://b.test/", "Engine", "The engine has two cylinders.", ())


class Fussy:
    def __init__(self):
        raise LookupError("no model\nhere")


class Even:
    def __call__(self, pages):
        return [0.5] * len(pages)


@pytest.fixture(autouse=True)
def mine(monkeypatch):
    """The module `mine`, which holds judges."""
    module = ModuleType("mine")
    vars(module).update(
        Fussy=Fussy,
        Even=Even,
        number=3,
        few=lambda pages: [1.0],
        high=lambda pages: [0.5, 1.5],
        nan=lambda pages: [0.5, float("nan")],
        words=lambda pages: "no",
        fails=lambda pages: pages[0].nothing,
        leaves=lambda pages: sys.exit(3),
    )
    monkeypatch.setitem(sys.modules, "mine", module)
    monkeypatch.syspath_prepend(str(PROJECT))


def test_example_knows_recipes():
    soup, engine = OwnJudge(RECIPE)([SOUP, ENGINE])
    assert soup >= 0.5 > engine


def test_class_is_made_once():
    judge = OwnJudge("mine:Even")
    assert [judge([SOUP]).tolist(), judge([SOUP, ENGINE]).tolist()] == [[0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.at_all:judge", "failed: ModuleNotFoundError: No module named 'nowhere'"),
        ("mine:absent", "failed: AttributeError: module 'mine' has no attribute 'absent'"),
        ("mine:Fussy", "failed: LookupError: no model here"),
        ("mine:number", "is a int, must be callable"),
    ],
)
def test_missing_judge_is_one_line(name, said):
    with pytest.raises(TresError) as raised:
        OwnJudge(name)
    assert str(raised.value) == f"judge {name!r} {said}"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("few", "returned 1 numbers for 2 pages: return one for each"),
        ("high", "returned 1.5, must be from 0 to 1"),
        ("nan", "returned nan, must be from 0 to 1"),
        ("words", "failed: ValueError: could not convert string to float: 'n'"),
        ("fails", "failed: AttributeError: 'Page' object has no attribute 'nothing'"),
        ("leaves", "failed: SystemExit: 3"),
    ],
)
def test_bad_answer_is_one_line(name, said):
    with pytest.raises(TresError) as raised:
        OwnJudge(f"mine:{name}")([SOUP, ENGINE])
    assert str(raised.value) == f"judge 'mine:{name}' {said}"


def test_links_stay_the_packs():
    links = (Link("http://a.test/cheese", "cheese soup"), Link("http://a.test/x", "engine"))
    page = Page("http://b.test/", "Engine", "The engine.", links)
    pack = Pack.load(FOOD)
    (before,) = pack.judge([page])
    pack.judge_by(OwnJudge("mine:Even"))
    (after,) = pack.judge([page])
    assert after.probability == 0.5 != before.probability
    np.testing.assert_array_equal(after.actions, before.actions)


@pytest.mark.parametrize(
    ("judge", "judged_by", "threshold"),
    [(None, "", "the pack's"), ("a:b", "", 0.5), ("a:b", "a:b", "the pack's"), ("a:b", "c:d", 0.5)],
)
def test_threshold_is_the_judges(judge, judged_by, threshold):
    pack = Pack.load(FOOD)
    pack.judged_by, pack.threshold = judged_by, 0.75
    expected = pack.threshold if threshold == "the pack's" else threshold
    assert threshold_of(judge, pack) == expected


def test_code_of_a_pack_needs_consent():
    pack = Pack.load(FOOD)
    pack.judged_by = "stranger:judge"
    with pytest.raises(ConfigError, match=r"if you trust it, add -a judge=stranger:judge"):
        threshold_of(None, pack)


def test_judge_sees_pages_with_words_only():
    pack, seen = Pack.load(FOOD), []
    pack._own_judge = lambda pages: seen.extend(pages) or np.ones(len(pages))
    empty = Page("http://c.test/sitemap.xml", "", "", (Link("http://c.test/", "pie"),))
    assert [each.probability for each in pack.judge([empty, SOUP, empty])] == [0, 1, 0]
    assert seen == [SOUP]
    assert [each.probability for each in pack.judge([empty])] == [0]


@pytest.mark.long
@pytest.mark.slow
def test_judge_with_children_is_given_up(tmp_path, monkeypatch):
    """A child of the user's function holds the pipe of the answers open."""
    code = "import os, time\ndef judge(pages):\n    os.fork()\n    time.sleep(60)\n"
    (tmp_path / "forking.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    task = Task(FOOD, ReadingLimits(), own_judge="forking:judge")
    with closing(Worker(task, patience=3.0)) as judging:
        judging.wait()
        with pytest.raises(PageError, match="took more than 3 s"):
            judging([Source(b"<title>Soup</title>", "http://a.test/")])


@pytest.mark.usefixtures("loaded_python")
@pytest.mark.long
def test_judge_runs_in_its_process():
    def worker(name):
        return closing(Worker(Task(FOOD, ReadingLimits(), own_judge=name)))

    page = Source(b"<title>Soup</title><p>Stir 2 cups of milk, then boil.", "http://a.test/")
    with worker(RECIPE) as judging:
        judging.wait()
        assert judging([page])[0].probability == 0.5
    with worker("string:capwords") as judging:
        judging.wait()
        with pytest.raises(PageError, match=r"^judge 'string:capwords' failed: "):
            judging([page])
    with (
        worker("nowhere:judge") as judging,
        pytest.raises(WorkerError, match=r"^judge 'nowhere:judge' failed: "),
    ):
        judging.wait()
