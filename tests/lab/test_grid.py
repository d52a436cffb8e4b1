from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from comparing.result import Result, Run, make_grid, read_results, world_of


def grid(policies=("tres", "random"), caps=("none", "10"), topics=("food",), seeds=(1, 2)):
    return make_grid("synthetic", 50, topics=topics, policies=policies, caps=caps, seeds=seeds)


def result(run: Run, relevant: int = 5) -> Result:
    return Result(run, 10, relevant, 2, 12, exhausted=False, seconds=1.5, found=[])


def test_the_grid_has_every_run_once() -> None:
    runs = grid(policies=("tres", "random", "tres"), topics=("food", "sports"))
    assert len(runs) == 2 * 2 * 2 * 2
    assert Run("synthetic", "sports", 2, "random", "10", 50) in runs
    assert len({run.name for run in runs}) == len(runs)


def test_every_topic_has_its_starts() -> None:
    starts = {"food": ["http://a.test/", "http://b.test/"], "sports": ["http://a.test/"]}
    choices = {"policies": ["random"], "caps": ["none"], "seeds": [1, 2]}
    runs = make_grid("recorded", 50, topics=list(starts), starts=starts.__getitem__, **choices)
    assert [run.topic for run in runs] == ["food"] * 4 + ["sports"] * 2
    assert {run.trial for run in runs[:4]} == {(s, n) for s in starts["food"] for n in (1, 2)}
    assert len({run.name for run in runs}) == 6


@pytest.mark.parametrize("web", ["corpus", "recorded"])
def test_recorded_web_ignores_seed_and_start(web: str) -> None:
    run = Run(web, "food", 1, "random", "none", 50)
    assert world_of(run) == world_of(replace(run, seed=2, start="http://a.test/"))


def test_runs_of_one_pack_share_world() -> None:
    runs = grid(("tres", "random", "rivals:ACHE"), seeds=(1,))
    worlds = {run.policy: world_of(run) for run in runs}
    assert worlds["tres"] == worlds["random"] != worlds["rivals:ACHE"]
    first, second = (world_of(run) for run in grid(("tres",), ("none",)))
    assert first != second


def test_results_are_read_back(tmp_path: Path) -> None:
    results = [result(run) for run in grid()]
    for each in results:
        each.write(tmp_path)
    found, faults = read_results(tmp_path)
    assert sorted(found, key=lambda each: each.run) == sorted(results, key=lambda each: each.run)
    assert faults == []


@pytest.mark.parametrize("content", ["", '{"run": ', "[1]", '{"run": {}, "found": []}', "\ud800"])
def test_damaged_file_is_one_line(tmp_path: Path, content: str) -> None:
    first, second = grid(("tres",), ("none",))
    for run in (first, second):
        result(run).write(tmp_path)
    (tmp_path / f"{first.name}.json").write_bytes(content.encode(errors="surrogatepass"))
    found, faults = read_results(tmp_path)
    assert [each.run for each in found] == [second]
    (fault,) = faults
    assert f"{first.name}.json is damaged: " in fault
    assert "\n" not in fault


@pytest.mark.parametrize("name", ["relevant", "seconds", "found"])
def test_count_without_number_is_damage(tmp_path: Path, name: str) -> None:
    (run,) = grid(("tres",), ("none",))[:1]
    result(run).write(tmp_path)
    path = tmp_path / f"{run.name}.json"
    facts = json.loads(path.read_bytes())
    facts[name] = ["x"] if name == "found" else "x"
    path.write_text(json.dumps(facts))
    found, (fault,) = read_results(tmp_path)
    assert found == []
    assert "'x' must be a finite number" in fault


def test_result_under_wrong_name_is_damage(tmp_path: Path) -> None:
    first, second = grid(("tres",), ("none",))
    result(first).write(tmp_path)
    (tmp_path / f"{first.name}.json").rename(tmp_path / f"{second.name}.json")
    found, (fault,) = read_results(tmp_path)
    assert found == []
    assert f"it contains the run '{first.name}'" in fault
