import pytest

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.console.spider_option import SPIDERS
from tres_scrapy.console.wording import option_of
from tres_scrapy.refresh.settings import RefreshConfig
from tres_scrapy.spiders.tres import TresSpider
from tres_scrapy.surface.spider import SurfaceSpider

SETTINGS = {
    "crawl": [each for owner in TresSpider.options for each in owner.declared().values()],
    "surface": [each for owner in SurfaceSpider.options for each in owner.declared().values()],
    "refresh": RefreshConfig.arguments(),
}


def arguments(name, *given):
    return SPIDERS[name].arguments(name, given)


@pytest.mark.parametrize("name", SPIDERS)
def test_every_setting_is_an_option(name, capsys):
    with pytest.raises(SystemExit) as end:
        arguments(name, "--help-all")
    assert end.value.code == 0
    shown = capsys.readouterr().out.replace(",", " ").split()
    assert [each.name for each in SETTINGS[name] if option_of(each.argument) not in shown] == []


def test_help_hides_research(capsys):
    with pytest.raises(SystemExit):
        arguments("crawl", "--help")
    shown = capsys.readouterr().out
    assert "--max-per-domain" in shown
    assert "--breadth" in shown
    assert ".md" not in shown
    assert "--gamma" not in shown


def test_options_become_spider_arguments():
    urls = ("http://a.test/", "http://b.test/")
    given = ("--pages", "5", *urls, "--csv", "--no-report", "-s", "RETRY_TIMES=0", "--jobdir", "j")
    assert arguments("crawl", "food", *given) == [
        *("crawl", "tres", "-s", "STATS_DUMP=0"),
        *("-a", "pages=5", "-a", "csv=1", "-a", "report=0"),
        *("-a", "topic=food", "-a", f"seed={','.join(urls)}"),
        *("-s", "RETRY_TIMES=0", "-s", "JOBDIR=j"),
    ]
    words = ["-a", "budget=9", "-a", "collection=a.jsonl"]
    quiet = ["crawl", "refresh", "-s", "STATS_DUMP=0"]
    assert arguments("refresh", "a.jsonl", "--budget", "9") == [*quiet, *words]


def test_words_without_scheme_are_urls():
    given = arguments("crawl", "food", "a.test/x", "b.test", "--pages", "5")
    assert "seed=https://a.test/x,https://b.test" in given


@pytest.mark.parametrize("given", [("--logfile", "f"), ("-L", "INFO"), ("-s", "STATS_DUMP=1")])
def test_stats_are_shown_when_asked_for(given):
    assert "STATS_DUMP=0" not in arguments("crawl", "food", *given)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("--page", "5"), "tres crawl: unknown option --page; did you mean --pages?; "),
        (("--max_html=5",), "tres crawl: unknown option --max_html; did you mean --max-html?; "),
        (("--pages",), "tres crawl: argument --pages: expected one argument; "),
        (("--csv", "1"), "tres crawl: --csv takes no value: write --csv; "),
        (("--report", "0"), "tres crawl: --report takes no value: write --no-report; "),
        (("--seed", "@f", "http://a.test/"), "'http://a.test/' and --seed: give only one of them"),
    ],
)
def test_wrong_option_is_one_line(given, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        arguments("crawl", "food", *given)
    said = capsys.readouterr().err
    assert complaint in said
    assert said.endswith("; see tres crawl --help\n")
    assert said.count("\n") == 1
    assert end.value.code == 2


def test_wrong_value_is_found_at_once():
    with pytest.raises(ConfigError, match=r"\(-a pages=\) 'x': must be a whole number"):
        arguments("crawl", "food", "--pages", "x")
