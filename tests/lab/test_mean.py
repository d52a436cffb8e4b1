from __future__ import annotations

import pytest
from comparing.result import Result, Run
from comparing.table import (
    Key,
    Spread,
    caps_of,
    cells_of,
    policies_of,
)


def result(
    policy: str,
    seed: int,
    relevant: int,
    domains: int,
    *,
    cap: str = "none",
    pages: int = 100,
) -> Result:
    run = Run("synthetic", "food", seed, policy, cap, 100)
    return Result(run, pages, relevant, domains, pages, pages < 100, 1.0, [])


def cell(*results: Result):
    (found,) = cells_of(results).values()
    return found


def test_means_have_sample_deviation() -> None:
    tres = cell(result("tres", 1, 90, 10), result("tres", 2, 80, 14))
    assert tres.harvest == pytest.approx((85.0, 7.0710678))
    assert tres.domains == pytest.approx((12.0, 2.8284271))


def test_one_value_has_no_deviation() -> None:
    assert Spread.of([3.0]) == (3.0, None)


def test_exhausted_crawl_counts_fetched_pages() -> None:
    ache = cell(
        result("ache", 1, 30, 5, pages=60), result("ache", 2, 40, 5), result("ache", 3, 0, 0)
    )
    assert ache.harvest.mean == pytest.approx((50 + 40 + 0) / 3)
    assert ache.ran_out == [60]
    assert cell(result("ache", 2, 40, 5)).ran_out == []


def test_policies_and_caps_are_ordered() -> None:
    caps = ["5_2", "10", "none", "5", "100"]
    policies = ["gone", "random", "tree_random", "tres"]
    cells = cells_of(
        result(policy, 1, 1, 1, cap=cap) for policy, cap in zip(policies, caps[:4], strict=True)
    )
    cells |= cells_of([result("tres", 1, 1, 1, cap=caps[4])])
    assert caps_of(cells) == ["none", "100", "10", "5", "5_2"]
    assert policies_of(cells) == ["tres", "tree_random", "random", "gone"]
    assert Key("food", "random", "10") in cells
