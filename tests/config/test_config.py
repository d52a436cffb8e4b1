from dataclasses import fields
from pathlib import Path

import pytest
from conftest import PROJECT
from scrapy.settings import Settings

from tres_scrapy.config.config import Config, ConfigError, apply_arguments
from tres_scrapy.frontier.ledger import Cap
from tres_scrapy.frontier.limit import FrontierLimits
from tres_scrapy.page.text import ReadingLimits


def config(**settings):
    return Config.from_settings(
        Settings({f"TRES_{name.upper()}": value for name, value in settings.items()})
    )


def test_defaults_are_those_of_the_dataclass():
    assert config() == Config()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("pages", "20000", 20000),
        ("pages", 20000, 20000),
        ("pages", "", None),
        ("max_per_domain", "10", Cap(10, 10)),
        ("max_per_domain", "none", None),
        ("gamma", "0.99", 0.99),
        ("bucketed_features", "1", True),
        ("bucketed_features", True, True),
        ("output", "a/b.jsonl", Path("a/b.jsonl")),
        ("seed", "http://a.test", ("http://a.test/",)),
        ("seed", "http://a.test/x,y, https://b.test", ("http://a.test/x,y", "https://b.test/")),
    ],
)
def test_value_is_read(name, text, value):
    assert getattr(config(**{name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("pages", "0", "whole number from 1 up"),
        ("pages", "1.5", "whole number"),
        ("max_pending_per_domain", "9" * 26, "from 1 to 1000000000"),
        ("replay_capacity", "9" * 26, "from 1 to 100000000"),
        ("gamma", "1", "number from 0 to 0.999"),
        ("gamma", "nan", "number from 0"),
        ("policy", "best", "one of tres, tree_random"),
        ("bucketed_features", "maybe", "1 or 0"),
        ("topic", "../../etc", "letters, digits"),
        ("web_port", "65536", "from 0 to 65535"),
        ("seed", "http://a.test/, mailto:x@a.test", "'mailto:x@a.test"),
        ("known", "a,,b", "one comma between two"),
        ("metrics_file", "a", "end in .prom"),
        ("warc", "some", "one of none, relevant, all"),
        ("warc_file", "a.warc", "end in .warc.gz"),
        ("max_per_domain", "many", "a number, two like 5_2, or none"),
    ],
)
def test_bad_value_names_the_rule(name, text, rule):
    with pytest.raises(ConfigError) as error:
        config(**{name: text})
    message = str(error.value)
    assert f"TRES_{name.upper()} (-a {name}=) {text!r}: must" in message
    assert rule in message


@pytest.mark.parametrize(
    ("settings", "hint"),
    [({"policy": "best-first"}, "best_first"), ({"web": "sintetic"}, "synthetic")],
)
def test_misspelt_choice_gets_suggestion(settings, hint):
    with pytest.raises(ConfigError, match=f"must be one of .*; did you mean {hint}[?]$"):
        config(**settings)


def test_limits_of_reading_are_settings():
    limits = config(max_html=1000, max_links=10, max_anchor=50).reading
    assert limits == ReadingLimits(html=1000, links=10, anchor=50)


def test_limits_of_the_frontier_are_settings():
    limits = config(max_frontier=100, max_pending_per_domain=10, max_failures=5).frontier
    assert limits == FrontierLimits(pending=100, pending_per_domain=10, failures=5)


def test_misspelt_setting_gets_suggestion():
    with pytest.raises(ConfigError, match="TRES_PAGE; did you mean TRES_PAGES"):
        config(page=3)


def test_seeds_from_a_file(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_text("# start here\nhttp://a.test/\n\nhttp://b.test/\nhttp://a.test/\n")
    seeds = "http://a.test/", "http://b.test/"
    assert config(seed=f"@{file}").seed == seeds
    file.write_text("http://a.test/\r\nhttp://b.test/\r\n", encoding="utf-8-sig")
    assert config(seed=f"@{file}").seed == seeds


def test_empty_file_of_seeds_is_refused(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_text("\n")
    with pytest.raises(ConfigError, match="at least one URL"):
        config(seed=f"@{file}")


def test_every_setting_is_a_spider_argument():
    settings = Settings()
    apply_arguments(settings, {"pages": "7", "topic": "food"})
    assert Config.from_settings(settings).pages == 7
    with pytest.raises(ConfigError, match="unknown argument -a page; did you mean pages"):
        apply_arguments(settings, {"page": "7"})


def test_every_setting_says_what_it_means():
    assert all(spec.metadata["meaning"] for spec in fields(Config))


def test_every_limit_is_documented():
    limits = [spec.name for spec in fields(Config) if spec.name.startswith("max_")]
    text = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
    assert [name for name in limits if f"`TRES_{name.upper()}`" not in text] == []


def test_topic_and_seed_are_required(tmp_path):
    (tmp_path / "food").mkdir()
    (tmp_path / "food" / "topic.toml").touch()
    config(models=tmp_path, topic="food").require_topic()
    for topic, complaint in ((None, "no topic"), ("sports", "unknown topic 'sports'.*food")):
        with pytest.raises(ConfigError, match=complaint):
            config(models=tmp_path, topic=topic).require_topic()
    config(seed="http://a.test/").require_seed()
    config(web="synthetic").require_seed()
    with pytest.raises(ConfigError, match="no seed"):
        config().require_seed()


def test_adaptive_cap_needs_page_limit():
    assert config(max_per_domain="5_2", pages=9).max_per_domain == Cap(5, 2)
    with pytest.raises(ConfigError, match="add -a pages=N"):
        config(max_per_domain="5_2")


@pytest.mark.parametrize("web", ["corpus", "recorded"])
def test_web_of_files_needs_its_files(web):
    with pytest.raises(ConfigError, match="TRES_WEB_DATA"):
        config(web=web).require_seed()
