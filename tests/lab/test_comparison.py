from __future__ import annotations

import csv
from pathlib import Path

from comparing.comparison import write_report
from comparing.result import Result, Run


def result(policy: str, seed: int, pages: int = 20) -> Result:
    run = Run("synthetic", "food", seed, policy, "10", pages)
    return Result(run, 20, 9 + seed, 2, 25, exhausted=False, seconds=3.5, found=[])


def test_all_runs_have_a_row(tmp_path: Path) -> None:
    write_report(tmp_path, [result("tres", 2), result("random", 1)], "a web")
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        random, tres = csv.DictReader(file)
    assert tres == {
        "web": "synthetic",
        "topic": "food",
        "policy": "tres",
        "max": "10",
        "start": "",
        "seed": "2",
        "pages_asked": "20",
        "pages": "20",
        "relevant": "11",
        "harvest": "0.55",
        "domains": "2",
        "fetches": "25",
        "exhausted": "0",
        "seconds": "3.5",
        "found_100": "",
        "found_200": "",
        "found_400": "",
        "area": "0",
    }
    assert (random["policy"], random["relevant"]) == ("random", "10")


def recorded(policy: str, start: str, found: list[int], pages: int = 250) -> Result:
    run = Run("recorded", "food", 1, policy, "none", pages, start)
    return Result(run, pages, len(found), 2, 300, False, 1.0, found)


def test_recorded_web_shows_fetches(tmp_path: Path) -> None:
    results = [
        recorded("tres", start, [1, 99, 250]) for start in ("http://a.test/", "http://b.test/")
    ]
    text = write_report(tmp_path, results, "recorded web").read_text()
    assert "## T = 250 pages, 2 starts, seeds 1" in text
    assert "### Relevant pages found: food" in text
    assert "|  | runs | 100 fetches | 200 fetches | 250 fetches | 250 pages | area |" in text
    with (tmp_path / "results.csv").open(encoding="utf-8") as file:
        first, _ = csv.DictReader(file)
    names = ("start", "found_100", "found_200", "found_400", "area")
    assert [first[name] for name in names] == ["http://a.test/", "2", "2", "", str(250 + 152 + 1)]


def test_generated_web_has_no_table_of_fetches(tmp_path: Path) -> None:
    text = write_report(tmp_path, [result("tres", 1)], "synthetic web").read_text()
    assert "Relevant pages found" not in text
    assert "starts" not in text.splitlines()[6]


def test_page_shows_every_table(tmp_path: Path) -> None:
    results = [result(policy, seed) for policy in ("tres", "oracle") for seed in (1, 2)]
    text = write_report(tmp_path, results, "synthetic web, in one process").read_text()
    assert "synthetic web, in one process." in text
    assert "## T = 20 pages, seeds 1, 2" in text
    assert "| TRES_10 | **52.5 ± 3.5** / **2 ± 0** |" in text


def test_crawls_of_different_length_stay_apart(tmp_path: Path) -> None:
    text = write_report(tmp_path, [result("tres", 1), result("random", 1, 30)], "a").read_text()
    _, short, long = text.split("## T = ")
    assert short.startswith("20 pages")
    assert "TRES_10" in short
    assert "Random" not in short
    assert long.startswith("30 pages")
    assert "Random_10" in long
    assert "TRES_10" not in long
