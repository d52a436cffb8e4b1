import pytest
from conftest import command

from tres_scrapy.cli import crawl as module
from tres_scrapy.config.guest import offered
from tres_scrapy.config.typed import option_of
from tres_scrapy.spiders.tres import TresSpider

SETTINGS = {"crawl": [each for owner in TresSpider.options for each in owner.declared().values()]}
for owner in offered("options"):
    program = owner.__module__.split(".")[1]
    own = [each for each in owner.declared().values() if f"TRES_{program.upper()}_" in each.name]
    SETTINGS[program] = own


@pytest.fixture
def arguments(monkeypatch):
    """Return the words of `scrapy` for those of `tres`."""
    found: list[list[str]] = []
    monkeypatch.setattr(module, "execute", found.append)

    def run(*given):
        with pytest.raises(SystemExit, match="0"):
            command(*given)
        return found.pop()

    return run


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_is_an_option(name, capsys):
    with pytest.raises(SystemExit, match="0"):
        command(name, "--help-all")
    shown = capsys.readouterr().out.replace(",", " ").split()
    assert [each.name for each in SETTINGS[name] if option_of(each.argument) not in shown] == []


def test_help_hides_research(capsys):
    with pytest.raises(SystemExit, match="0"):
        command("crawl", "--help")
    shown = capsys.readouterr().out
    assert "--max-per-domain" in shown
    assert "--breadth" in shown
    assert "--gamma" not in shown


def test_options_become_spider_arguments(arguments):
    urls = ("http://a.test/", "http://b.test/")
    given = ("--pages", "5", *urls, "--csv", "--no-report", "-s", "RETRY_TIMES=0", "--jobdir", "j")
    assert arguments("crawl", "food", *given, "-a", "gamma=0.9") == [
        *("tres", "crawl", "tres"),
        *("-a", "pages=5", "-a", "csv=1", "-a", "report=0"),
        *("-a", "topic=food", "-a", f"seed={','.join(urls)}", "-a", "gamma=0.9"),
        *("-s", "RETRY_TIMES=0", "-s", "JOBDIR=j", "-s", "STATS_DUMP=0"),
    ]


def test_words_without_scheme_are_urls(arguments):
    given = arguments("crawl", "food", "a.test/x", "b.test", "--pages", "5")
    assert "seed=https://a.test/x,https://b.test" in given


@pytest.mark.parametrize("given", [("--logfile", "f"), ("-L", "INFO"), ("-s", "STATS_DUMP=1")])
def test_stats_are_shown_when_asked_for(given, arguments):
    assert "STATS_DUMP=0" not in arguments("crawl", "food", *given)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (("--page", "5"), "tres crawl: unknown option --page; did you mean --pages?; "),
        (("--max_depth=5",), "tres crawl: unknown option --max_depth; did you mean --max-depth?; "),
        (("--pages",), "tres crawl: --pages needs a value; "),
        (("--pages", "--csv"), "tres crawl: --pages needs a value; "),
        (("--csv", "1"), "tres crawl: --csv takes no value: write --csv; "),
        (("--report", "0"), "tres crawl: --report takes no value: write --no-report; "),
        (("--seed", "@f", "http://a.test/"), "'http://a.test/' and --seed: give only one of them"),
        (("-s", "x"), "tres crawl: -s 'x' must be NAME=VALUE; "),
    ],
)
def test_wrong_option_is_one_line(given, complaint, capsys):
    with pytest.raises(SystemExit) as end:
        command("crawl", "food", *given)
    said = capsys.readouterr().err
    assert complaint in said
    assert said.endswith("; see tres crawl --help\n")
    assert said.count("\n") == 1
    assert end.value.code == 2


def test_wrong_value_is_found_at_once():
    with pytest.raises(SystemExit, match=r"^tres crawl: --pages 'x': must be a whole number"):
        command("crawl", "food", "--pages", "x")
