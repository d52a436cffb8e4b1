"""TRES_PRESET: the values of a preset, and what wins over it."""

import re

import pytest
from conftest import PROJECT
from scrapy.settings import Settings

from tres_scrapy import settings as ours
from tres_scrapy.addon import TresAddon
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import PREFIX, ConfigError
from tres_scrapy.config.option import apply_arguments
from tres_scrapy.config.preset import DEPARTURES, SETTINGS

PLACES = ("addon", "project", "spider", "cmdline")  # Scrapy's priorities


def settings_with(place, name, value):
    """Return this project's settings, one more set in a place, and the preset by -a."""
    settings = Settings()
    settings.setmodule(ours, "project")
    settings.set(name, value, place)
    apply_arguments(settings, {"preset": "paper"}, Config.declared().values())
    return settings


def test_preset_sets_every_value():
    known, values = Config.declared(), Config.from_settings({"TRES_PRESET": "paper"}).values()
    own = {
        name: known[name].read(text) for name, text in SETTINGS.items() if name.startswith(PREFIX)
    }
    assert values == Config().values() | own | {"TRES_PRESET": ("paper",)}


def of_departures(config):
    return {
        name: getattr(getattr(config, part) if part else config, name)
        for name, (part, _) in DEPARTURES.items()
    }


def test_preset_restores_all_departures_or_those_it_names():
    paper, usual = {name: value for name, (_, value) in DEPARTURES.items()}, of_departures(Config())
    assert not [name for name in paper if paper[name] == usual[name]]
    assert of_departures(Config.from_settings({"TRES_PRESET": "paper"})) == paper
    for name, value in paper.items():
        one = Config.from_settings({"TRES_PRESET": name})
        assert of_departures(one) == usual | {name: value}
        assert one.links.enabled


def test_no_preset_changes_nothing():
    assert Config.from_settings({"TRES_PRESET": "none"}) == Config()


@pytest.mark.parametrize("place", PLACES)
def test_own_setting_wins_over_preset(place):
    config = Config.of(settings_with(place, "TRES_BREADTH", "0.2"))
    assert (config.learning.breadth, config.learning.representatives) == (0.2, 1)


def test_empty_setting_does_not_win():
    assert (
        Config.from_settings({"TRES_PRESET": "paper", "TRES_BREADTH": ""}).learning.breadth == 0.0
    )


def test_preset_is_seen_after_first_parse():
    settings = Settings({"TRES_GAMMA": "0.9"})
    assert Config.of(settings).learning.batch_size == 64
    apply_arguments(settings, {"preset": "paper"}, Config.declared().values())
    config = Config.of(settings)
    assert (config.learning.batch_size, config.agent.gamma) == (60, 0.9)


def test_unknown_preset_gets_a_hint():
    with pytest.raises(ConfigError, match=r"TRES_PRESET .*'papre': must be none, or some of paper"):
        Config.from_settings({"TRES_PRESET": "papre"})


@pytest.mark.parametrize("place", PLACES[1:])
def test_own_concurrency_wins_over_preset(place):
    settings = settings_with(place, "CONCURRENT_REQUESTS", 5)
    TresAddon().update_settings(settings)
    assert settings.getint("CONCURRENT_REQUESTS") == 5


@pytest.mark.parametrize(("preset", "requests"), [("paper", 1), ("none", 16)])
def test_paper_sends_one_request_at_a_time(preset, requests):
    settings = settings_with("cmdline", "TRES_TOPIC", "food")
    settings.set("TRES_PRESET", preset, "cmdline")
    TresAddon().update_settings(settings)
    assert settings.getint("CONCURRENT_REQUESTS") == requests


def test_table_of_departures_is_the_preset():
    """The last column of the table names all values of the preset, or why it has no value."""
    text = (PROJECT / "docs" / "paper.md").read_text(encoding="utf-8")
    table = text.partition("## Departures")[2].partition("\n\n`-a")[0]
    rows = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert {len(row) for row in rows} == {5}
    header, *cells = (row[-1].removesuffix(" |") for row in rows)
    assert header == "to restore it"
    named, restored = {}, set()
    for cell in cells:
        if not cell.startswith("no setting: "):
            assert re.fullmatch(r"`\w+=[^` ]+`(, `\w+=[^` ]+`)*", cell), cell
            values = re.findall(r"`(\w+)=([^`]+)`", cell)
            restored |= {value for name, value in values if name == "preset"}
            named |= {name: value for name, value in values if name != "preset"}
    known = Config.declared()
    assert named == {
        known[name].argument if name in known else name: value for name, value in SETTINGS.items()
    }
    assert restored == DEPARTURES.keys()


@pytest.mark.long
def test_crawl_follows_the_preset(scrapy, tmp_path):
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", "web=synthetic", "-a", "pages=20"),
        *("-L", "INFO", "-a", "preset=paper", "-a", "breadth=0.5", "-a", "report=0"),
        *("-a", f"output={tmp_path / 'items.jsonl'}"),
    )
    assert process.returncode == 0, process.stderr
    assert "'CONCURRENT_REQUESTS': '1'" in process.stderr
    figures = process.stats["tres/phase"], process.stats["tres/updates"]
    assert figures == ("exploration", 0), "the own setting wins, the others are the preset's"
