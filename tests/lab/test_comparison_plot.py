from __future__ import annotations

from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.comparison_plot import _courses, draw, look_of
from tres_scrapy.lab.result import Result, Run, Series
from tres_scrapy.lab.table import Cell

pytestmark = pytest.mark.slow

MARKS = list(range(20, 201, 20))


def result(policy: str, cap: str, seed: int, *, topic: str = "food", measured: bool = True):
    relevant = [mark * (3 + seed) // 10 for mark in MARKS]
    series = Series(MARKS, relevant, relevant)
    if measured:
        leaves = [1 + mark // 50 for mark in MARKS] if policy == "tres" else [0] * len(MARKS)
        frontier = [40 * mark for mark in MARKS]
        series = Series(MARKS, relevant, relevant, frontier, leaves)
    run = Run("synthetic", topic, seed, policy, cap, 200)
    return Result(run, 200, relevant[-1], 7 * seed, 220, False, 1.0, series)


RESULTS = [
    result(policy, cap, seed, topic=topic)
    for policy, cap, seed, topic in product(
        ("tres", "random", "oracle"), ("none", "5_2"), (1, 2), ("food", "sports")
    )
]


def words(path: Path) -> set[str]:
    texts = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - ours
    return {"".join(text.itertext()).strip() for text in texts}


def test_every_plot_names_what_it_shows(tmp_path: Path) -> None:
    names = [picture.name for picture in draw(tmp_path, RESULTS, "_200")]
    assert names == ["harvest_200.svg", "pareto_200.svg", "frontier_200.svg"]
    harvest, pareto, frontier = (words(tmp_path / name) for name in names)
    crawlers = {"TRES", "Random", "Oracle"}
    assert crawlers | {"food, MAX none", "sports, MAX 5_2"} <= harvest
    assert crawlers | {"food", "sports", "relevant domains, logarithmic", "none", "5_2"} <= pareto
    assert {"MAX none", "MAX 5_2", "leaves"} <= frontier
    assert not crawlers & frontier


def test_same_results_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    draw(tmp_path / "again", RESULTS[::-1], "")
    for picture in draw(tmp_path, RESULTS, ""):
        again = (tmp_path / "again" / picture.name).read_bytes()
        assert again == (tmp_path / picture.name).read_bytes()


def test_no_two_policies_look_the_same() -> None:
    looks = [look_of(policy) for policy in POLICIES]
    assert len({(look["color"], look["linestyle"]) for look in looks}) == len(POLICIES)


def test_fruitless_crawls_are_drawn(tmp_path: Path) -> None:
    (picture,) = draw(tmp_path, [Result(RESULTS[0].run, 9, 0, 0, 9, False, 1.0, Series())], "")
    assert picture.name == "pareto.svg"


def test_crawler_with_empty_crawl_is_drawn(tmp_path: Path) -> None:
    empty = Result(
        Run("synthetic", "food", 3, "random", "none", 200), 0, 0, 0, 1, True, 1, Series()
    )
    harvest = draw(tmp_path, [*RESULTS, empty], "")[0]
    without = draw(tmp_path, RESULTS, "_without")[0]
    drawn, as_before = ((tmp_path / each.name).read_bytes() for each in (harvest, without))
    assert drawn == as_before


def test_empty_panels_are_left_out(tmp_path: Path) -> None:
    results = [each for each in RESULTS if (each.run.topic, each.run.cap) != ("sports", "5_2")]
    harvest = words(tmp_path / draw(tmp_path, results, "")[0].name)
    assert {"food, MAX 5_2", "sports, MAX none"} <= harvest
    assert "sports, MAX 5_2" not in harvest


def test_courses_are_read_at_whole_pages() -> None:
    short = Series([1, 2, 3], [1, 1, 2], [1, 1, 1])
    run = Run("synthetic", "food", 1, "tres", "none", 3)
    cell = Cell((Result(run, 3, 2, 1, 3, False, 1.0, short),))
    marks, relevant = _courses(cell, "relevant")
    assert marks.tolist() == [1, 2, 3]
    assert relevant.tolist() == [[1, 1, 2]]


def test_missing_measurements_are_not_drawn(tmp_path: Path) -> None:
    served = [result("tres", "none", seed, measured=False) for seed in (1, 2)]
    assert [picture.name for picture in draw(tmp_path, served, "")] == ["harvest.svg", "pareto.svg"]
    others = [result("random", "none", 1)]
    assert "frontier.svg" not in [picture.name for picture in draw(tmp_path, others, "")]
    assert draw(tmp_path, [], "") == []
