"""What the signals of a page reserve."""

from datetime import UTC, datetime

import pytest

from tres_scrapy.rights.signal import (
    Signal,
    header_signals,
    meta_signals,
    preferences,
    reserved_uses,
)

NOW = datetime(2026, 6, 1, tzinfo=UTC)
US = "our-crawler"


def reserved(*signals: Signal) -> str:
    return " ".join(sorted(reserved_uses(signals, NOW)))


@pytest.mark.parametrize(
    ("name", "denied", "allowed", "uses"),
    [
        ("Content-Signal", "ai-train=no", "ai-train=yes, search=yes", "ai-train"),
        ("Content-Signal", "search=no,ai-input=no", "ai-input=yes", "ai-input search"),
        ("Content-Signal", "AI-Train = NO", "ai-train=yes", "ai-train"),
        ("Content-Usage", "train-ai=n", "train-ai=y, search=y", "ai-train"),
        ("Content-Usage", "search=n, train-ai=y", "search=y", "search"),
        ("tdm-reservation", "1", "0", "ai-input ai-train"),
        ("unavailable_after", "2026-05-31", "2027-01-01", "ai-input ai-train search"),
        (
            "unavailable_after",
            "31 May 2026 15:00:00 GMT",
            "1 Jul 2026 15:00:00 GMT",
            "ai-input ai-train search",
        ),
        ("unavailable_after", "soon", "2027-01-01", "ai-input ai-train search"),
        *(
            ("unavailable_after", f"1 Jan {date}", "2027-01-01", "ai-input ai-train search")
            for date in ("2020 00:00:00 +99999999999999999", "99999999999999999999 00:00:00")
        ),
    ],
)
def test_strictest_value_wins(name, denied, allowed, uses):
    strict, open_ = Signal(name, denied, "header"), Signal(name, allowed, "robots.txt")
    assert reserved(open_) == ""
    assert reserved(strict, open_) == reserved(open_, strict) == uses


@pytest.mark.parametrize(
    ("word", "uses"),
    [
        ("noai", "ai-input ai-train"),
        ("noimageai", ""),
        ("noarchive", "ai-input ai-train"),
        ("nosnippet", "ai-input"),
        ("noindex", "search"),
        ("none", "search"),
    ],
)
@pytest.mark.parametrize("place", ["meta", "header"])
def test_directive_beats_what_allows(word, uses, place):
    said = f"index, {word.upper()}, follow"
    if place == "meta":
        found = meta_signals([("Robots", said)], US)
    else:
        found = header_signals([("X-Robots-Tag", f"{US}: {said}")], US)
    assert len(found) == 1
    allows = Signal("Content-Signal", "search=yes, ai-input=yes, ai-train=yes", "robots.txt")
    assert reserved(*found, allows) == uses


def test_other_crawlers_are_not_us():
    assert not meta_signals([("otherbot", "noai")], US)
    assert not header_signals([("X-Robots-Tag", "otherbot: noai")], US)


def test_date_keeps_its_comma():
    said = "noarchive, unavailable_after: Sat, 30 May 2026 10:00:00 GMT, nosnippet"
    found = header_signals([("X-Robots-Tag", said)], US)
    assert {each.signal: each.value for each in found} == {
        "unavailable_after": "Sat, 30 May 2026 10:00:00 GMT",
        "noarchive": "",
        "nosnippet": "",
    }


def test_licence_reserves_nothing():
    assert (
        reserved(Signal("license", "https://creativecommons.org/licenses/by-nd/4.0/", "link")) == ""
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("train-ai=y, search=n", {"train-ai": "y", "search": "n"}),
        ("train-ai=n", {"train-ai": "n"}),
        ("", {}),
        ('train-ai=y, train-ai, search=n, search="n"', {}),  # the last of a key counts
        ("train-ai=n, train-ai=y", {"train-ai": "y"}),
        ("train-ai;allow=n, train-ai=y", {"train-ai": "y"}),
        ('train-ai;has;parameters="?"', {}),
        ('train-ai=n;why="a, b=y";q=0.5, other=(a b "c");x, n=?1', {"train-ai": "n"}),
        ("train-ai=N", {}),
        ("Train-AI=n", {}),  # the dictionary cannot be parsed
        ("train-ai=n,", {}),
        ("train-ai=n search=n", {}),
        ("unknown=n, search=maybe", {"unknown": "n"}),
    ],
)
def test_content_usage_is_a_dictionary(text, said):
    assert preferences(text) == said
