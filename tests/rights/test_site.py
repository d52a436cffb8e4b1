"""What robots.txt and tdmrep.json say about URLs."""

import pytest

from tres_scrapy.page.robots import own_rules
from tres_scrapy.rights.site import SiteRules, matches

GROUPS = b"""\
Content-Signal: ai-input=no
User-agent: *
Disallow: /shut/
Content-Usage: train-ai=n
content-usage : /open/ train-ai=y # for all
Content-Usage: /open/ search=n

User-agent: ourbot
Allow: /
Content-Usage: train-ai=y
Content-Signal: /a%2fb/ ai-train=no, search=yes
"""


def said(rules: SiteRules, path: str) -> list[tuple[str, str]]:
    return [(each.signal, each.value) for each in rules.of(f"https://a.test{path}")]


def robots(token: str, body: bytes = GROUPS) -> SiteRules:
    return SiteRules.of_robots(own_rules(body, token).decode(), "2026-06-01T00:00:00+00:00")


def test_group_for_everyone_counts():
    both = [("Content-Usage", "train-ai=y"), ("Content-Usage", "search=n")]
    before = ("Content-Signal", "ai-input=no")
    assert said(robots("another"), "/page") == [before, ("Content-Usage", "train-ai=n")]
    assert said(robots("another"), "/open/page") == [before, *both]


def test_group_that_names_us_replaces_it():
    found = said(robots("ourbot"), "/open/page")
    assert found == [("Content-Signal", "ai-input=no"), ("Content-Usage", "train-ai=y")]


def test_escapes_of_paths_are_equal():
    rules = robots("ourbot")
    assert ("Content-Signal", "ai-train=no, search=yes") in said(rules, "/a%2Fb/c")
    assert ("Content-Signal", "ai-train=no, search=yes") not in said(rules, "/a/b/c")


def test_rules_of_use_leave_the_others():
    own = own_rules(GROUPS, "another").decode()
    assert "Disallow: /shut/" in own
    assert "ourbot" not in own


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("", "/a", True),
        ("/a", "/ab", True),
        ("/a$", "/ab", False),
        ("/a$", "/a", True),
        ("/*.html", "/a/b.html?c", True),
        ("/*.html$", "/a/b.html?c", False),
        ("/*.html$", "/a.html/b.html", True),
        ("/a*b*c", "/axxbxxc", True),
        ("/a*b*c", "/axxcxxb", False),
        ("/ab*b$", "/ab", False),
        ("*", "/", True),
    ],
)
def test_patterns_are_those_of_robots(pattern, path, expected):
    assert matches(pattern, path) is expected


def test_hostile_pattern_takes_no_time():
    assert not matches("/" + "*a" * 5_000 + "$", "/" + "a" * 4_000)


TDM = b"""[
  {"location": "/free/", "tdm-reservation": 0},
  {"location": "/", "tdm-reservation": 1, "tdm-policy": "https://a.test/policy.json"}
]"""


def test_first_rule_of_tdm_file_counts():
    rules = SiteRules.of_tdm_file(TDM, "")
    assert said(rules, "/free/x") == [("tdm-reservation", "0")]
    assert said(rules, "/x") == [
        ("tdm-reservation", "1"),
        ("tdm-policy", "https://a.test/policy.json"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"<html>",
        b"",
        b"\xff",
        b"[" * 100_000,
        rb'[{"location": "/\ud800", "tdm-reservation": 1}]',
        rb'[{"location": "/", "tdm-policy": "\ud800"}]',
    ],
)
def test_bad_tdm_file_is_refused(body):
    with pytest.raises(ValueError, match=r".+"):
        SiteRules.of_tdm_file(body, "")


@pytest.mark.parametrize(("written", "value"), [(b"true", "1"), (b"false", "0"), (b'"1"', "1")])
def test_true_reserves_as_one(written, value):
    body = b'[{"location": "/", "tdm-reservation": %b}]' % written
    assert said(SiteRules.of_tdm_file(body, ""), "/x") == [("tdm-reservation", value)]


def test_odd_rules_are_left_out():
    assert not SiteRules.of_tdm_file(
        b'[1, {"location": 5}, {"location": "/", "x": 1}]', ""
    ).statements
