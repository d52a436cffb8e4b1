from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from tres_scrapy.bench.comparison import write_report
from tres_scrapy.bench.result import Result, Run, Series

pytestmark = pytest.mark.slow

SERIES = Series([10, 20], [5, 9], [1, 2], [400, 800], [2, 3], [0.5, 1.25])


def result(policy: str, seed: int, pages: int = 20) -> Result:
    run = Run("synthetic", "food", seed, policy, "10", pages)
    return Result(run, 20, 9 + seed, 2, 25, exhausted=False, seconds=3.5, series=SERIES)


def test_all_runs_have_a_row(tmp_path: Path) -> None:
    write_report(tmp_path, [result("tres", 2), result("random", 1)], "a web")
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        random, tres = csv.DictReader(file)
    assert tres == {
        "web": "synthetic",
        "topic": "food",
        "policy": "tres",
        "max": "10",
        "seed": "2",
        "pages_asked": "20",
        "pages": "20",
        "relevant": "11",
        "harvest": "0.55",
        "domains": "2",
        "fetches": "25",
        "exhausted": "0",
        "seconds": "3.5",
        "decision_ms": "1.25",
    }
    assert (random["policy"], random["relevant"]) == ("random", "10")


def test_page_shows_every_plot(
    tmp_path: Path,
) -> None:
    results = [result(policy, seed) for policy in ("tres", "oracle") for seed in (1, 2)]
    text = write_report(tmp_path, results, "synthetic web, in one process").read_text()
    assert "synthetic web, in one process." in text
    assert "## T = 20 pages, seeds 1, 2" in text
    assert "| TRES_10 | **52.5 ± 3.5** / **2 ± 0** |" in text
    assert "| TRES_10 | 1.000 ± 0.000 |" in text
    links = re.findall(r"!\[.*\]\((.*)\)", text)
    assert links == [f"{n}_20.svg" for n in ("harvest", "pareto", "frontier", "decision")]
    assert all((tmp_path / link).exists() for link in links)
    assert "Variants" not in text


def test_crawls_of_different_length_stay_apart(tmp_path: Path) -> None:
    text = write_report(tmp_path, [result("tres", 1), result("random", 1, 30)], "a").read_text()
    _, short, long = text.split("## T = ")
    assert short.startswith("20 pages")
    assert "TRES_10" in short
    assert "Random" not in short
    assert long.startswith("30 pages")
    assert "Random_10" in long
    assert "TRES_10" not in long
