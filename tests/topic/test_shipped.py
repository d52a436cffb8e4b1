import zipfile
from pathlib import Path

import pytest
from conftest import PROJECT

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.assembly import require_pack
from tres_scrapy.topic import shipped
from tres_scrapy.topic.shipped import VECTORS, packs, shipped_models, topics


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of packs in a foreign project."""
    monkeypatch.chdir(tmp_path)
    for topic in ("cheese", "food"):
        (tmp_path / "models" / topic).mkdir(parents=True)
        (tmp_path / "models" / topic / "topic.toml").touch()
    return tmp_path / "models"


def test_shipped_packs_have_vectors():
    assert shipped_models() == PROJECT / "models"
    assert (shipped_models() / VECTORS).is_file()


def test_zipped_packs_are_unpacked(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "project.egg", "w") as egg:
        egg.writestr("tres_scrapy/models/food/topic.toml", "name = 'food'\n")
        egg.writestr("tres_scrapy/models/vectors/english.npz", b"\x00\x01")
    zipped = zipfile.Path(tmp_path / "project.egg") / "tres_scrapy"
    monkeypatch.setattr(shipped, "files", lambda package: zipped)
    monkeypatch.setattr(shipped, "_unpacked", [])
    models = shipped_models.__wrapped__()
    found = {path.relative_to(models): path.read_bytes() for path in models.rglob("*.*")}
    assert found == {Path("food/topic.toml"): b"name = 'food'\n", VECTORS: b"\x00\x01"}
    shipped._unpacked[0].cleanup()
    assert not models.exists()


def test_pack_here_hides_shipped(own):
    found = packs()
    assert found["cheese"].resolve() == own / "cheese"
    assert found["food"].resolve() == own / "food"
    assert found["sports"] == PROJECT / "models" / "sports"


def test_packs_of_policies_are_no_topics(own):
    (own / "solo-svm").mkdir()
    (own / "solo-svm" / "topic.toml").touch()
    assert "food-svm" in packs()
    assert topics() == ["cheese", "food", "hardware", "solo-svm", "sports"]


def test_given_folder_is_the_only_one(own):
    assert set(packs(own)) == {"cheese", "food"}
    assert require_pack(Config(topic="food", models=own)) == own / "food"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "^no topic: add -a topic=NAME, one of cheese, food$"),
        ({"topic": "sports"}, "unknown topic 'sports': the packs in models/ are cheese, food;"),
        (
            {"topic": "food", "policy": "tress"},
            r"^TRES_POLICY \(-a policy=\) 'tress': must be (one of )?tres\b.*; "
            "did you mean tres[?]$",
        ),
    ],
)
def test_missing_pack_is_refused(own, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        require_pack(Config(models=own, **settings))
