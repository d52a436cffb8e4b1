import json

import pytest
from recorded_run import crawl_of, record

from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.tree import Split
from tres_scrapy.report import crawl_chart, learned_chart
from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import Point
from tres_scrapy.run.snapshot import Node


@pytest.fixture(scope="module")
def crawl(recorded):
    return recorded.crawl


@pytest.fixture(scope="module")
def drawn(recorded):
    with Record(recorded.path) as read:
        return {chart.name: chart for chart in charts(read)}


def test_every_picture_has_json(drawn):
    names = ("harvest", "relevant_domains", "frontier", "speed", "loss", "outcomes", "domains")
    shown = [*names, "tree", *(f"dependence_{name}" for name in FEATURES)]
    assert list(drawn)[: len(shown) + 2] == [*shown, "calibration", "precision"]
    assert {name.split("_")[0] for name in list(drawn)[len(shown) + 2 :]} == {"links"}
    for chart in drawn.values():
        assert chart.title
        assert chart.note.endswith(".")
        assert json.loads(json.dumps(chart.as_figure()))["data"]


def test_harvest_ends_at_total(crawl, drawn):
    whole, recent = drawn["harvest"].data
    assert whole["x"][-1] == crawl.pages
    assert whole["y"][-1] == pytest.approx(100 * crawl.harvest_rate, abs=0.01)
    assert len(recent["y"]) == len(recent["x"])


def test_recent_harvest_uses_last_pages():
    points = [Point(i, i, 10 * i, 10 * min(i, 5), 0, 0, 0, 0, 0) for i in range(11)]
    recent = crawl_chart._harvest(points[1:]).data[1]["y"]
    assert recent[4] == 100, "until then all were relevant"
    assert recent[7] == 0, "none of the last thirty"
    assert recent[6] == pytest.approx(100 / 3, abs=0.01)


def test_speed_has_gaps():
    times = (60.0, 120.0, 720.0, 780.0)
    points = [Point(i, time, i, i, 0, 0, 0, 2.0 + i, 0) for i, time in enumerate(times)]
    (line,) = crawl_chart._speed(points, [0.0, 690.0]).data
    assert line["x"] == [0, 1, 1, 11, 12]
    assert line["y"] == [2.0, 3.0, None, 4.0, 5.0]


def test_frontier_and_leaves_share_scale(crawl, drawn):
    frontier, leaves = drawn["frontier"].data
    assert (frontier["y"][-1], leaves["y"][-1]) == (crawl.store.pending, len(crawl.policy.tree))
    assert drawn["frontier"].layout["yaxis"]["type"] == "log"


def test_boxes_of_the_tree_add_up(crawl, drawn):
    (trace,) = drawn["tree"].data
    children = {}
    for own, parent, value in zip(trace["ids"], trace["parents"], trace["values"], strict=True):
        children.setdefault(parent, []).append((own, value))
    values = dict(zip(trace["ids"], trace["values"], strict=True))
    assert children[""] == [("0", len(crawl.policy.tree._experiences))]
    for parent, found in children.items():
        if parent:
            assert sum(value for _, value in found) == values[parent]
    leaves = set(trace["ids"]) - set(trace["parents"])
    assert len(leaves) == len(crawl.policy.tree)
    assert any("P(text) ≥" in label for label in trace["labels"])


def test_large_tree_shows_busy_part(monkeypatch):
    def chain(depth):
        below = Node(0, fetched=1)
        above = chain(depth - 1) if depth else Node(0, fetched=100)
        return Node(None, Split(0, 0.5, 0.1), (below, above), fetched=below.fetched + above.fetched)

    monkeypatch.setattr(learned_chart, "NODES", 9)
    rows = list(learned_chart._drawn(chain(50)))
    assert len(rows) == 9
    assert min(node.fetched for _, _, _, node in rows if node.children) > 100


def test_outcomes_add_up_to_the_steps(crawl, drawn):
    (bars,) = drawn["outcomes"].data
    assert sum(bars["x"]) == crawl.pages + sum(crawl.failures.values())
    assert "http 404" in bars["y"]


def test_policy_without_tree_draws_less(tmp_path):
    record(tmp_path / "a.run", crawl_of("plain", pages=40))
    with Record(tmp_path / "a.run") as read:
        names = [chart.name for chart in charts(read)]
    assert names == ["harvest", "relevant_domains", "frontier", "speed", "outcomes", "domains"]


def test_nothing_booked_is_nothing_drawn(tmp_path):
    assert record(tmp_path / "a.run", crawl_of("tres", pages=0)) == []
    with Record(tmp_path / "a.run") as read:
        assert charts(read) == []
