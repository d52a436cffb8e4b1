from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from comparing.condition import FILE, Conditions
from comparing.result import Run
from comparing.simulation import run_of

from tres_scrapy.config.declaration import ConfigError

RUN = Run("synthetic", "food", 3, "tree_random", "5_2", 700)
CONDITIONS = Conditions("synthetic", None, {"TRES_GAMMA": "0.5"}, "tres")


@pytest.mark.parametrize("cap", ["none", "10", "5_2"])
def test_run_settings_override_common_ones(cap: str) -> None:
    run = replace(RUN, cap=cap)
    config = CONDITIONS.config(run)
    assert run_of(config) == run
    assert (config.agent.gamma, config.random_seed) == (0.5, 3)


def test_a_wrong_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="TRES_GAMMA"):
        replace(CONDITIONS, settings={"TRES_GAMMA": "2"}).config(RUN)


def test_the_same_conditions_may_come_back(tmp_path: Path) -> None:
    CONDITIONS.note(tmp_path, [], is_new=True)
    before = (tmp_path / FILE).read_bytes()
    replace(CONDITIONS).note(tmp_path, [], is_new=True)
    assert (tmp_path / FILE).read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"settings": {}},
            "the settings {'TRES_GAMMA': '0.5'}, these would have {'TRES_GAMMA': None}",
        ),
        ({"web": "corpus"}, "the web 'synthetic'"),
    ],
)
def test_other_conditions_are_not_mixed(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    CONDITIONS.note(tmp_path, [], is_new=True)
    with pytest.raises(ValueError, match=said) as raised:
        replace(CONDITIONS, **change).note(tmp_path, [], is_new=True)
    assert "give another --output" in str(raised.value)


def test_corpus_is_known_by_content(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "web.jsonl").write_text("{}" if name == "c" else "[]")
    corpus = [replace(CONDITIONS, web="corpus", data=tmp_path / n / "web.jsonl") for n in "abc"]
    corpus[0].note(tmp_path, [], is_new=True)
    corpus[1].note(tmp_path, [], is_new=True)
    assert str(tmp_path) not in (tmp_path / FILE).read_text()
    with pytest.raises(ValueError, match="data"):
        corpus[2].note(tmp_path, [], is_new=True)


def test_recording_is_known_by_files(tmp_path: Path) -> None:
    for folder, files in (("a", "12"), ("b", "12"), ("c", "13")):
        (tmp_path / folder / "web").mkdir(parents=True)
        for name in files:
            (tmp_path / folder / "web" / f"{name}.warc").write_text(name)
    webs = [replace(CONDITIONS, web="recorded", data=tmp_path / n / "web") for n in "abc"]
    webs[0].note(tmp_path, [], is_new=True)
    webs[1].note(tmp_path, [], is_new=True)
    with pytest.raises(ValueError, match="the data"):
        webs[2].note(tmp_path, [], is_new=True)


@pytest.mark.parametrize("content", ["{", "[]", json.dumps({"web": "corpus"}), '{"labels": "a"}'])
def test_unreadable_conditions_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(ValueError, match="give another --output"):
        CONDITIONS.note(tmp_path, [], is_new=True)


def test_other_packs_are_not_mixed(tmp_path: Path) -> None:
    models = tmp_path / "models"
    for name in ("food", "sports"):
        (models / name).mkdir(parents=True)
        (models / name / "topic.toml").write_text(name)
    conditions = replace(CONDITIONS, settings={"TRES_MODELS": str(models)})
    sports = replace(RUN, topic="sports")
    conditions.note(tmp_path, [RUN], is_new=True)
    conditions.note(tmp_path, [sports], is_new=False)
    (models / "food" / "topic.toml").write_text("trained again")
    conditions.note(tmp_path, [sports], is_new=False)
    with pytest.raises(
        ValueError, match=r"have the packs of food '\w{64}', .* give another --output"
    ):
        conditions.note(tmp_path, [RUN, sports], is_new=False)


def test_labels_are_known_by_content(tmp_path: Path) -> None:
    food, sports = (replace(RUN, web="recorded", topic=topic) for topic in ("food", "sports"))
    for name in ("a-food", "b-food", "b-sports"):
        (tmp_path / name).write_text("http://a.test/")
    first, second = (
        replace(CONDITIONS, web="recorded", labels=f"{tmp_path}/{name}-{{topic}}") for name in "ab"
    )
    assert first.config(food).web.labels == tmp_path / "a-food"
    first.note(tmp_path, [food], is_new=True)
    second.note(tmp_path, [food, sports], is_new=False)
    (tmp_path / "b-food").write_text("http://b.test/")
    second.note(tmp_path, [sports], is_new=False)
    with pytest.raises(ValueError, match=r"have the labels of food '\w{64}'"):
        second.note(tmp_path, [food], is_new=False)
    with pytest.raises(ValueError, match=r"have the labels of food .* would have None"):
        replace(second, labels="").note(tmp_path, [food], is_new=False)


def test_places_of_packs_do_not_matter(tmp_path: Path) -> None:
    for name in "ab":
        settings = {"TRES_MODELS": f"/{name}"}
        replace(CONDITIONS, settings=settings).note(tmp_path, [], is_new=True)


def test_start_of_run_overrides_seed() -> None:
    project = replace(CONDITIONS, settings={"TRES_SEED": "http://c.test/"})
    run = replace(RUN, start="http://a.test/x,y,http://b.test/")
    assert project.config(run).seed == ("http://a.test/x,y", "http://b.test/")
    assert run_of(project.config(run)) == run
    assert project.config(RUN).seed == ()
