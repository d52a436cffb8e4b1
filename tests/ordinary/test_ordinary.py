"""Ordinary Scrapy spiders do with the add-on what they do without it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import pytest
from comparison import Crawled, crawl_both, differences
from conftest import interpreter
from ordinary_spiders import SPIDERS

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Justified:
    """What may differ (patterns of what `differences` finds), why, and what must hold for it."""

    kinds: tuple[str, ...]
    reason: str
    holds: Callable[[Crawled, Crawled], bool]

    def covers(self, kind: str) -> bool:
        return any(fnmatchcase(kind, pattern) for pattern in self.kinds)


def items_of(crawled: Crawled) -> list[dict[str, Any]]:
    """Return the items of all runs."""
    return [item for run in crawled.runs for item in run["items"]]


def texts_of(crawled: Crawled) -> list[str]:
    return sorted(json.dumps(item, sort_keys=True) for item in items_of(crawled))


def pages_of(crawled: Crawled) -> int:
    return sum(run["stats"].get("response_received_count", 0) for run in crawled.runs)


def sent_one_less(plain: Crawled, ours: Crawled) -> bool:
    """Return whether at most the request is missing that Scrapy sends while it ends."""
    reasons = [run["stats"]["finish_reason"] for each in (plain, ours) for run in each.runs]
    return 0 <= pages_of(plain) - pages_of(ours) <= 1 and len(set(reasons)) == 1


def all_pages_once(plain: Crawled, ours: Crawled) -> bool:
    return texts_of(plain) == texts_of(ours) and plain.runs[0]["items"] != []


def counted_what_waits(_: Crawled, ours: Crawled) -> bool:
    told = items_of(ours)
    lengths = [item["length"] for item in told]
    falling = lengths == sorted(lengths, reverse=True) and len(lengths) == 4
    return falling and all(item["pending"] == (item["length"] > 0) for item in told)


def asked_robots_only(_: Crawled, ours: Crawled) -> bool:
    return bool(ours.requests) and all("/robots.txt" in each for each in ours.requests)


PAGES = ("items", "requests", "item_scraped_count", "downloader/*", "response_received_count")
ERRORS = ("log_count/ERROR", "spider_exceptions/*", "request_depth_max")
ENDING = Justified(
    (*PAGES, *ERRORS),
    "The next page is chosen when the one before is done, so none is sent while the crawl ends.",
    sent_one_less,
)
JUSTIFIED: dict[str, Justified] = {
    **dict.fromkeys(("close-spider", "error-limit", "item-limit", "time-limit"), ENDING),
    "priority-new-callback": Justified(
        ("items", "requests"),
        "Links that may be pages have the order of the frontier, not that of their priority.",
        all_pages_once,
    ),
    "queue-of-pages": Justified(
        ("items",),
        "The next page is chosen when the one before is done: one more link waits meanwhile.",
        counted_what_waits,
    ),
    "resumed-pages": Justified(
        (*PAGES, *ERRORS),
        "The frontier chooses which pages are fetched before the crawl ends.",
        all_pages_once,
    ),
    "url-user": Justified(
        (*PAGES, *ERRORS, "httperror/*"),
        "User name and password are taken out of a URL: Scrapy cannot send them, and logs them.",
        lambda _, ours: "love" not in json.dumps(items_of(ours)),
    ),
    "robots-broken": Justified(
        (*PAGES, *ERRORS, "retry/*", "robotstxt/*"),
        "A site whose robots.txt fails is not fetched (RFC 9309).",
        asked_robots_only,
    ),
}


@pytest.fixture(scope="module")
def crawled():
    """Both crawls of each spider."""
    return crawl_both(interpreter().path)


@pytest.mark.parametrize("name", SPIDERS)
def test_spider_works_as_without_addon(crawled, name):
    plain, ours = crawled[0][name], crawled[1][name]
    found = differences(plain, ours, ordered=SPIDERS[name].ordered)
    if (allowed := JUSTIFIED.get(name)) is not None:
        assert allowed.holds(plain, ours), f"not justified by: {allowed.reason}"
        found = {kind: lines for kind, lines in found.items() if not allowed.covers(kind)}
    lines = [f"{kind}: {line}" for kind, lines in found.items() for line in lines[:4]]
    if lines:
        pytest.fail("\n".join(lines), pytrace=False)


@pytest.mark.parametrize("name", SPIDERS)
def test_spider_shows_its_feature(crawled, name):
    """Each spider works without the add-on, or a comparison would say nothing."""
    runs = crawled[0][name].runs
    assert any(run["items"] or run["errors"] or "own/run" in run["stats"] for run in runs)
    assert not any(run["late"] or run["raised"] or run["failed"] for run in runs)


def test_justified_spiders_exist():
    assert JUSTIFIED.keys() <= SPIDERS.keys()
