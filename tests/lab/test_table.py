from __future__ import annotations

import pytest
from comparing.result import Result, Run
from comparing.table import (
    LOOKAHEAD,
    NAMES,
    cells_of,
    crawler_table,
    found_table,
    name_of,
)

from tres_scrapy.crawl.registry import POLICIES


def result(
    policy: str,
    seed: int,
    relevant: int,
    domains: int,
    *,
    cap: str = "none",
    topic: str = "food",
    pages: int = 1000,
) -> Result:
    run = Run("synthetic", topic, seed, policy, cap, 1000)
    return Result(run, pages, relevant, domains, 1, pages < 1000, 1.0, [])


CELLS = cells_of(
    [
        *[result("tres", 1, 900, 1000), result("tres", 2, 880, 1200)],
        *[result("random", 1, 90, 10), result("random", 2, 70, 12)],
        *[result("best_first", 1, 700, 1300), result("best_first", 2, 700, 1302)],
        *[result("oracle", 1, 1000, 2000), result("oracle", 2, 1000, 2000)],
        *[result("tres", 1, 600, 90, cap="5_2"), result("tres", 2, 600, 92, cap="5_2")],
        result("best_first", 1, 200, 50, cap="5_2", pages=500),
        *[result("tres", 1, 500, 5, topic="sports"), result("tres", 2, 500, 5, topic="sports")],
    ]
)


def test_table_3_marks_the_best() -> None:
    assert crawler_table(CELLS) == [
        "|  | food | sports |",
        "| --- | --- | --- |",
        "| TRES | **89.0 ± 1.4** / 1,100 ± 141 | **50.0 ± 0.0** / **5 ± 0** |",
        "| Random | 8.0 ± 1.4 / 11 ± 1 |  |",
        "| Best-First | 70.0 ± 0.0 / **1,301 ± 1** |  |",
        "| Oracle | 100.0 ± 0.0 / 2,000 ± 0 |  |",
        "| TRES_5_2 | **60.0 ± 0.0** / **91 ± 1** |  |",
        "| Best-First_5_2 | 40.0 / 50 (n = 1) †500 |  |",
    ]


def test_few_runs_are_never_best() -> None:
    tres = [result("tres", seed, relevant, 9) for seed, relevant in enumerate((900, 600, 600), 1)]
    ache = result("rivals:ACHE", 1, 800, 9)
    (_, _, row, other) = crawler_table(cells_of([*tres, ache]))
    assert row == "| TRES | **70.0 ± 17.3** / **9 ± 0** |"
    assert other == "| ACHE | 80.0 / 9 (n = 1) |"


def test_best_crawler_has_all_seeds() -> None:
    food = [result("tres", seed, 900, 9) for seed in (1, 2, 3)]
    sports = [result("tres", 1, 900, 9, topic="sports")]
    other = [result("rivals:ACHE", 4, 950, 9, topic="sports")]
    assert crawler_table(cells_of([*food, *sports]))[-1] == (
        "| TRES | **90.0 ± 0.0** / **9 ± 0** | **90.0** / **9** |"
    )
    assert crawler_table(cells_of([*food, *sports, *other]))[2:] == [
        "| TRES | **90.0 ± 0.0** / **9 ± 0** | 90.0 / 9 (n = 1) |",
        "| ACHE |  | 95.0 / 9 (n = 1) |",
    ]


def test_exhausted_seeds_are_reported() -> None:
    results = [result("rivals:ACHE", 1, 40, 9), result("rivals:ACHE", 2, 40, 9, pages=60)]
    assert crawler_table(cells_of(results))[-1].endswith(" †60 (1 of 2) |")


def found(policy: str, start: str, fetches: list[int], *, cap: str = "none") -> Result:
    run = Run("recorded", "food", 1, policy, cap, 400, start)
    return Result(run, 400, len(fetches), 1, 420, False, 1.0, fetches)


FOUND = [
    found("tres", "a", [1, 100, 101, 200, 400, 401]),
    found("tres", "b", [1]),
    found("best_first", "a", [301]),
]


def test_fetches_are_counted_exactly() -> None:
    assert found_table(cells_of(FOUND), "food", 400) == [
        "|  | runs | 100 fetches | 200 fetches | 400 fetches | 400 pages | area |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| TRES | 2 | 1.5 (1 to 2) | 2.5 (1 to 4) | 3.0 (1 to 5) | 3.5 (1 to 6) |  |",
        "| Best-First | 1 | 0 | 0 | 1 | 1 |  |",
    ]
    assert found_table(cells_of(FOUND), "sports", 400) == []


def test_area_is_share_of_lookahead() -> None:
    lookahead = found(LOOKAHEAD, "a", [1, 2, 3])  # area 400 + 399 + 398
    lines = found_table(cells_of([*FOUND, lookahead]), "food", 400)
    shares = [line.split(" | ")[-1].rstrip(" |") for line in lines[2:]]
    area = 400 + 301 + 300 + 201 + 1
    assert shares == [f"{area / 1197:.3f} (n = 1)", f"{100 / 1197:.3f}", "1.000"]
    capped = found("tres", "a", [1], cap="10")
    assert found_table(cells_of([capped, lookahead]), "food", 400)[-1].endswith(" | 1 |  |")


def test_share_has_lowest_and_highest() -> None:
    lookahead = [found(LOOKAHEAD, start, [1, 2]) for start in "ab"]
    tres = [found("tres", "a", [1, 2]), found("tres", "b", [201, 400])]
    line = found_table(cells_of([*tres, *lookahead]), "food", 400)[2]
    assert line.endswith("| 0.626 (0.252 to 1.000) |")


def test_lookahead_is_never_best() -> None:
    results = [result("tres", 1, 500, 5), result(LOOKAHEAD, 1, 900, 9)]
    assert crawler_table(cells_of(results))[2:] == [
        "| TRES | **50.0** / **5** |",
        "| Lookahead | 90.0 / 9 |",
    ]


@pytest.mark.parametrize(
    ("policy", "cap", "name"),
    [("tres", "none", "TRES"), ("tres", "5_2", "TRES_5_2"), ("new", "10", "new_10")],
)
def test_crawlers_have_paper_names(policy: str, cap: str, name: str) -> None:
    assert name_of(policy, cap) == name


def test_every_policy_has_a_name() -> None:
    assert set(POLICIES) <= set(NAMES)
