import pytest

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import Status
from tres_scrapy.cluster.page import ClusterControl, ClusterState
from tres_scrapy.config.config import Config


@pytest.fixture
def state():
    config = Config.from_settings({"TRES_TOPIC": "food", "TRES_MAX_PER_DOMAIN": "10"})
    state = ClusterState(config, 3)
    state.control = ClusterControl(None, lambda: state.ends)
    return state


def shown(state, finish="", **status):
    figures = {"relevant_pages": 5, "relevant_domains": 2, "frontier_size": 70, "leaves": 4}
    figures |= {"failures/robots": 1, "failures/http_404": 2, "outbox": 9, "under_way": 1}
    first = Status(0, 10, 2, ready=True, value=0.5, figures=figures)
    second = Status(1, 30, 1, **status, figures=figures)
    state.show(Overview({0: first, 1: second}, {0: 0.2, 1: 0.3}, 100, finish, ""))
    return state()


def test_numbers_are_sums(state):
    found = shown(state)
    assert (found["pages"], found["limit"], found["relevant"]) == (40, 100, 10)
    assert (found["harvest"], found["domains"], found["frontier"]) == (0.25, 4, 140)
    assert (found["failures"], found["under_way"], found["leaves"]) == (6, 2, 8)
    assert (found["status"], found["max"]) == ("running", "10")


def test_each_shard_has_a_row(state):
    first, second, third = shown(state, ready=True, idle=True)["shards"]
    assert (first["state"], second["state"]) == ("running", "idle")
    assert third == {"shard": 2, "state": "starting"}
    assert (first["pages"], first["harvest"], first["q"]) == (10, 0.5, 0.5)
    assert (first["failures"], first["outbox"], first["age"]) == (3, 9, 0.2)


@pytest.mark.parametrize(("age", "word"), [(60.0, "does not report"), (None, "does not report")])
def test_missing_shard_is_named(state, age, word):
    ages = {} if age is None else {0: age}
    state.show(Overview({0: Status(0, ready=True)}, ages, None, "", ""))
    assert state()["shards"][0]["state"] == word


def test_changed_max_is_shown(state):
    state.control.cap = "3"
    assert shown(state)["max"] == "3"


def test_end_is_told(state):
    state.tell_end("page_limit", ["a.html"])  # no page is open: nothing waits
    found = shown(state, finish="page_limit")
    assert found["end"] == {"reason": "all pages are fetched", "files": ["a.html"]}
    assert found["status"] == "ending"
