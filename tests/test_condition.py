from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tres_scrapy.bench.condition import FILE, Conditions
from tres_scrapy.bench.result import Run
from tres_scrapy.bench.simulation import run_of
from tres_scrapy.config import ConfigError

RUN = Run("synthetic", "food", 3, "tree_random", "5_2", 700)
CONDITIONS = Conditions("synthetic", None, False, {"TRES_GAMMA": "0.5"}, "tres")


@pytest.mark.parametrize("cap", ["none", "10", "5_2"])
def test_a_run_is_configured_as_it_says_under_the_settings_of_all(cap: str) -> None:
    run = replace(RUN, cap=cap)
    config = CONDITIONS.config(run)
    assert run_of(config) == run
    assert (config.gamma, config.random_seed) == (0.5, 3)


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="TRES_GAMMA"):
        replace(CONDITIONS, settings={"TRES_GAMMA": "2"}).config(RUN)


def test_the_same_conditions_may_come_back(tmp_path: Path) -> None:
    CONDITIONS.note(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    replace(CONDITIONS).note(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"http": True}, "the mode 'in one process', these would have 'HTTP'"),
        ({"settings": {}}, "the settings {'TRES_GAMMA': '0.5'}, these would have {}"),
        ({"web": "corpus"}, "the web 'synthetic'"),
    ],
)
def test_results_of_other_conditions_are_not_mixed(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    CONDITIONS.note(tmp_path)
    with pytest.raises(ValueError, match=said) as raised:
        replace(CONDITIONS, **change).note(tmp_path)
    assert "give another --output" in str(raised.value)


def test_a_corpus_is_known_by_its_content_not_its_folder(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "web.jsonl").write_text("{}" if name == "c" else "[]")
    corpus = [replace(CONDITIONS, web="corpus", data=tmp_path / n / "web.jsonl") for n in "abc"]
    corpus[0].note(tmp_path)
    corpus[1].note(tmp_path)
    assert str(tmp_path) not in (tmp_path / FILE).read_text()
    with pytest.raises(ValueError, match="data"):
        corpus[2].note(tmp_path)


def test_a_recording_is_known_by_the_files_in_its_folder(tmp_path: Path) -> None:
    for folder, files in (("a", "12"), ("b", "12"), ("c", "13")):
        (tmp_path / folder / "web").mkdir(parents=True)
        for name in files:
            (tmp_path / folder / "web" / f"{name}.warc").write_text(name)
    webs = [replace(CONDITIONS, web="recorded", data=tmp_path / n / "web") for n in "abc"]
    webs[0].note(tmp_path)
    webs[1].note(tmp_path)
    with pytest.raises(ValueError, match="the data"):
        webs[2].note(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"web": "corpus"})])
def test_conditions_that_cannot_be_read_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ValueError, match="give another --output"):
        CONDITIONS.note(tmp_path)
