import zipfile
from pathlib import Path

import pytest
from conftest import PROJECT
from scrapy.settings import BaseSettings

from tres_scrapy.config.config import Config, ConfigError
from tres_scrapy.topic import shipped
from tres_scrapy.topic.shipped import VECTORS, shipped_models


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of packs in a project that is not ours."""
    monkeypatch.chdir(tmp_path)
    for topic in ("cheese", "food"):
        (tmp_path / "models" / topic).mkdir(parents=True)
        (tmp_path / "models" / topic / "topic.toml").touch()
    return tmp_path / "models"


def config(**settings):
    return Config.from_settings(BaseSettings({f"TRES_{k.upper()}": v for k, v in settings.items()}))


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


def test_local_pack_goes_first(own):
    packs = config().packs()
    assert packs["cheese"].resolve() == own / "cheese"
    assert packs["food"].resolve() == own / "food"
    assert packs["sports"] == PROJECT / "models" / "sports"


def test_given_directory_is_the_only_one(own):
    assert set(config(models=own).packs()) == {"cheese", "food"}
    with pytest.raises(ConfigError, match="'sports': the packs in models/ are cheese, food;"):
        config(models=own, topic="sports").require_topic()
