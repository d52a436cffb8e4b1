import os
import threading
from pathlib import Path

import pytest
from conftest import PROJECT
from scrapy.settings import Settings

from tres_scrapy.addon import TresAddon
from tres_scrapy.config import option
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.guest import offered
from tres_scrapy.config.limit import Cap, FrontierLimits
from tres_scrapy.config.option import apply_arguments


def config(**settings):
    return Config.from_settings({f"TRES_{name.upper()}": value for name, value in settings.items()})


def test_defaults_are_the_dataclass():
    assert config() == Config()


BOOKS = "xn--bcher-kva.example"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("pages", "20000", 20000),
        ("pages", 20000, 20000),
        ("pages", "", None),
        ("max_per_domain", "10", Cap(10, 10)),
        ("max_per_domain", "none", None),
        ("gamma", "0.99", 0.99),
        ("csv", "1", True),
        ("csv", True, True),
        ("link_model", 0, False),
        ("web_seed", 7, 7),
        ("output", "a/b.jsonl", Path("a/b.jsonl")),
        ("seed", "http://a.test", ("http://a.test/",)),
        ("allow", "/a{1,2}/", ("/a{1,2}/",)),
        ("allowed_domains", "Example.org, .edu,bücher.example", (*("example.org", "edu"), BOOKS)),
        ("seed", "http://a.test/x,y, https://b.test", ("http://a.test/x,y", "https://b.test/")),
        ("seed", "a.test/x", ("https://a.test/x",)),
        (
            "seed",
            "localhost:8000/x, a.test:8080",
            ("https://localhost:8000/x", "https://a.test:8080/"),
        ),
        (
            "seed",
            "a.org/x,b.org/y,http://c.org,d.test",
            ("https://a.org/x", "https://b.org/y", "http://c.org/", "https://d.test/"),
        ),
        ("seed", "a.org/x,1,2.html", ("https://a.org/x,1,2.html",)),
    ],
)
def test_value_is_read(name, text, value):
    assert config(**{name: text}).values()[f"TRES_{name.upper()}"] == value


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("pages", "0", "whole number of 1 or more"),
        ("pages", "1.5", "whole number"),
        ("judges", "9" * 26, "from 1 to 64"),
        ("gamma", "1", "number from 0 to 0.999"),
        ("gamma", "nan", "number from 0"),
        ("csv", "maybe", "1 or 0"),
        ("topic", "../../etc", "letters, digits"),
        ("metrics_port", "65536", "from 0 to 65535"),
        ("seed", "http://a.test/, mailto:x@a.test", "'mailto:x@a.test"),
        ("seed", "tea", "'tea' is not one"),
        ("seed", "two words.org", "'two words.org' is not one"),
        ("seed", "user:password@a.test", "is not one"),
        ("known", "a,,b", "separated by single commas"),
        ("metrics_file", "a", "a name ending in .prom"),
        ("fields", "html,htm", "some of language, html, markdown, date, headings"),
        ("warc", "some", "one of none, relevant, all"),
        ("deny", "a(", "a regular expression or @FILE, 'a(' is not one"),
        ("denied_domains", "a.test/b", "domains such as example.org,.edu or @FILE, 'a.test/b' is"),
        ("denied_domains", "a.test,", "'' is not one"),
        ("max_per_domain", "many", "a number, two like 5_2, or none"),
    ],
)
def test_bad_value_is_one_line(name, text, rule):
    with pytest.raises(ConfigError) as error:
        config(**{name: text})
    message = str(error.value)
    assert f"TRES_{name.upper()} (-a {name}=) {text!r}: must" in message
    assert rule in message


@pytest.mark.parametrize(
    ("settings", "hint"),
    [({"warc": "relevent"}, "relevant"), ({"web": "sintetic"}, "synthetic")],
)
def test_misspelt_choice_gets_a_hint(settings, hint):
    with pytest.raises(ConfigError, match=f"must be one of .*; did you mean {hint}[?]$"):
        config(**settings)


def test_frontier_limits_are_settings():
    limits = config(max_frontier=100, max_failures=5).frontier
    assert limits == FrontierLimits(pending=100, failures=5)


def test_unknown_setting_gets_a_hint():
    with pytest.raises(ConfigError, match="TRES_PAGE; did you mean TRES_PAGES"):
        config(page=3)


def test_setting_of_deleted_guest_is_unknown(monkeypatch):
    pytest.importorskip("tres_scrapy.surface", reason="sets an option of this guest")
    assert config(surface_queries=3) == Config()
    monkeypatch.setattr(option, "places", lambda kind: [])
    with pytest.raises(ConfigError, match="unknown setting TRES_SURFACE_QUERIES"):
        config(surface_queries=3)


def test_scope_comes_from_files(tmp_path):
    file = tmp_path / "list"
    file.write_text("# mine\na.test\n\n.edu\n")
    assert config(denied_domains=f"@{file}").scope.denied_domains == ("a.test", "edu")
    assert config(allow=f"@{file}").scope.allow == ("a.test", ".edu")
    with pytest.raises(ConfigError, match="cannot be read"):
        config(deny="@missing")


def test_seeds_come_from_file(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_text("# start here\nhttp://a.test/\n\nhttp://b.test/\nhttp://a.test/\n")
    seeds = "http://a.test/", "http://b.test/"
    assert config(seed=f"@{file}").seed == seeds
    file.write_text("http://a.test/\r\nhttp://b.test/\r\n", encoding="utf-8-sig")
    assert config(seed=f"@{file}").seed == seeds


def test_missing_scheme_is_said_once(tmp_path, caplog):
    file = tmp_path / "seeds.txt"
    file.write_text("a.test/1\nhttp://a.test/2\na.test/3\n")
    for _ in range(2):
        found = config(seed=f"@{file}").seed
    assert found == ("https://a.test/1", "http://a.test/2", "https://a.test/3")
    assert caplog.messages == ["No scheme given: taken as https://a.test/1 (and 1 more)"]


def test_file_is_no_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("seeds.txt").write_text("http://a.test/")
    with pytest.raises(ConfigError, match=r"'seeds\.txt' is a file: write @seeds\.txt"):
        config(seed="seeds.txt")


def test_empty_seed_file_is_refused(tmp_path):
    file = tmp_path / "seeds.txt"
    file.write_text("\n")
    with pytest.raises(ConfigError, match="at least one URL"):
        config(seed=f"@{file}")


def test_settings_are_spider_arguments():
    settings, known = Settings(), Config.declared().values()
    rest = apply_arguments(settings, {"pages": "7", "topic": "food", "_job": "1"}, known)
    assert Config.from_settings(settings).pages == 7
    assert rest == {"_job": "1"}
    with pytest.raises(ConfigError, match="unknown argument -a page; did you mean pages"):
        apply_arguments(settings, {"page": "7"}, known)


@pytest.fixture
def pipe(tmp_path):
    """A named pipe that one reader can read a seed from."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threading.Thread(target=path.write_text, args=("http://a.test/\n",), daemon=True).start()
    return path


def test_seed_file_is_read_once(pipe):
    settings = Settings({"TRES_SEED": f"@{pipe}"})
    TresAddon().update_settings(settings)
    pipe.unlink()
    first = Config.of(settings)
    settings.freeze()
    assert Config.of(settings) is first
    assert first.seed == ("http://a.test/",)


def test_changed_setting_is_parsed_again():
    settings = Settings({"TRES_PAGES": "5"})
    assert Config.of(settings).pages == 5
    settings.set("TRES_PAGES", 9, "cmdline")
    assert Config.of(settings).pages == 9


@pytest.mark.long
def test_crawl_starts_from_pipe(scrapy, tmp_path, pages, pipe):
    pages.add("http://a.test/", "<title>cheese</title><p>A recipe for cheese.")
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", f"seed=@{pipe}"),
        *("-a", f"output={tmp_path / 'items.jsonl'}"),
        pages=pages,
    )
    assert process.returncode == 0, process.stderr
    assert pages.fetched() == ["http://a.test/"]


def test_frozen_settings_are_parsed():
    settings = Settings({"TRES_PAGES": 3})
    settings.freeze()
    assert Config.of(settings).pages == 3


def test_every_setting_has_a_meaning():
    for owner in (Config, *offered("options")):
        assert all(each.meaning and each.group for each in owner.declared().values())


def test_every_limit_is_documented():
    limits = [name for name in Config.declared() if name.startswith("TRES_MAX_")]
    text = (PROJECT / "docs" / "security.md").read_text(encoding="utf-8")
    assert [name for name in limits if f"`{name}`" not in text] == []


def test_crawl_needs_a_start():
    config(seed="http://a.test/").require_seed()
    config(web="synthetic").require_seed()
    with pytest.raises(ConfigError, match="no seed"):
        config().require_seed()


def test_adaptive_cap_needs_pages():
    assert config(max_per_domain="5_2", pages=9).max_per_domain == Cap(5, 2)
    with pytest.raises(ConfigError, match="add -a pages=N"):
        config(max_per_domain="5_2")


def test_learned_topic_has_one_judge(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("soup\n", encoding="utf-8")
    assert config(keywords=words, judges=1).judges == 1
    assert config(topic="food", judge="mine:rate", judges=2).judges == 2
    with pytest.raises(ConfigError, match=r"^-a judges=2: with -a keywords= one process"):
        config(keywords=words, judges=2)
    with pytest.raises(ConfigError, match=r"^-a judges=2: with -a answers= one process"):
        config(topic="food", answers=words, judges=2)


@pytest.mark.parametrize("web", ["corpus", "recorded"])
def test_web_needs_its_files(web):
    with pytest.raises(ConfigError, match="-a web_data=FILE"):
        config(web=web).require_seed()
