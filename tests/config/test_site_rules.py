"""Hours and requests a day, as users write them."""

import pytest

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.visit import NO_LIMIT, Hours, SiteRule

HOUR = 3600


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("22:00-06:00", 22 * HOUR, 6 * HOUR),
        ("08:30-20:00", 8.5 * HOUR, 20 * HOUR),
        ("22:00-24:00", 22 * HOUR, 24 * HOUR),
        ("always", 0, 24 * HOUR),
    ],
)
def test_hours_are_read_and_written(text, first, last):
    assert Hours.parse(text) == (first, last)
    assert str(Hours.parse(text)) == text


@pytest.mark.parametrize("text", ["22-6", "22:00-22:00", "25:00-06:00", "22:00", "9:00-10:00", ""])
def test_other_hours_are_refused(text):
    with pytest.raises(ValueError, match=r"^must be hours in UTC such as 22:00-06:00, or always$"):
        Hours.parse(text)


@pytest.mark.parametrize(
    ("hours", "hour", "wait"),
    [
        ("22:00-06:00", 23, 0),
        ("22:00-06:00", 0, 0),
        ("22:00-06:00", 5.99, 0),
        ("22:00-06:00", 6, 16),
        ("22:00-06:00", 21, 1),
        ("08:00-20:00", 8, 0),
        ("08:00-20:00", 20, 12),
        ("08:00-20:00", 7, 1),
        ("22:00-24:00", 0, 22),
        ("00:00-06:00", 6, 18),
        ("always", 13, 0),
    ],
)
def test_hours_begin_in(hours, hour, wait):
    day = 20_000 * 24 * HOUR  # midnight
    assert Hours.parse(hours).begin_in(day + hour * HOUR) == pytest.approx(wait * HOUR)


def rules(tmp_path, text):
    file = tmp_path / "sites.txt"
    file.write_text(text)
    return Config.from_settings({"TRES_SITE_RULES": str(file)}).visits.sites


def test_sites_are_read_from_a_file(tmp_path):
    text = "# mine\na.test 22:00-06:00 500\nb.test 100\n\nwww.C.test always\nd.test unlimited\n"
    assert rules(tmp_path, text) == (
        SiteRule("a.test", Hours.parse("22:00-06:00"), 500),
        SiteRule("b.test", None, 100),
        SiteRule("www.c.test", Hours()),
        SiteRule("d.test", None, NO_LIMIT),
    )


@pytest.mark.parametrize("line", ["a.test 22:00-06:00 5", "b.test 100", "c.test always unlimited"])
def test_rule_is_written_as_it_was_read(line):
    assert str(SiteRule.parse(line)) == line


@pytest.mark.parametrize(
    "line",
    [
        "a.test",
        "a.test 1",
        "a.test -5",
        "a.test often",
        "a.test 22:00-6:00",
        "a.test 5 6",
        "a.test always 22:00-06:00",
        "not/a/site 5",
        "@file 5",
        "a.test,b.test 5",
    ],
)
def test_bad_line_is_named(tmp_path, line):
    with pytest.raises(ConfigError) as refused:
        rules(tmp_path, f"good.test 5\n{line}\n")
    assert str(refused.value).endswith(
        f"must be a file of lines such as `example.org 22:00-06:00 500`, not {line!r}"
    )
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("co.uk 5\n", "'co.uk' is not one domain: requests are counted by domains"),
        ("a.test 5\nwww.a.test 6\n", "both of the domain 'a.test', whose requests are counted"),
    ],
)
def test_site_is_a_domain_with_one_line(tmp_path, text, said):
    with pytest.raises(ConfigError, match=said):
        rules(tmp_path, text)


def test_one_request_a_day_is_too_few():
    with pytest.raises(ConfigError, match="must be a whole number from 2 to"):
        Config.from_settings({"TRES_MAX_PER_DAY": "1"})
