"""Ordinary Scrapy spiders do with the add-on what they do without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from comparison import Crawled, crawl_both, differences
from conftest import interpreter
from ordinary_spiders import SPIDERS

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Justified:
    """Why a spider may do something else (docs/embed.md), and what must hold nevertheless."""

    reason: str
    holds: Callable[[Crawled, Crawled], bool]


def ends_alike(plain: Crawled, ours: Crawled) -> bool:
    """Return whether both crawls end for the same reason, ours with no more items."""
    pairs = list(zip(plain.runs, ours.runs, strict=True))
    reasons = all(a["stats"]["finish_reason"] == b["stats"]["finish_reason"] for a, b in pairs)
    return reasons and all(len(b["items"]) <= len(a["items"]) for a, b in pairs)


def has_same_items(plain: Crawled, ours: Crawled) -> bool:
    """Return whether all runs of both crawls together have the same items."""
    before, after = ([item for run in each.runs for item in run["items"]] for each in (plain, ours))
    return sorted(map(str, before)) == sorted(map(str, after))


ORDER = "TRES chooses the order of pages: another one is the last before a limit"
JUSTIFIED: dict[str, Justified] = {
    "close-spider": Justified(ORDER, ends_alike),
    "item-limit": Justified(ORDER, ends_alike),
    "error-limit": Justified(ORDER, ends_alike),
    "time-limit": Justified("a crawl that ends sends no page any more", ends_alike),
    "resumed-pages": Justified(ORDER, has_same_items),
    "priority-api": Justified("priority orders pages that are worth the same", has_same_items),
    "queue-of-pages": Justified("the scheduler counts the links of the frontier", ends_alike),
    "robots-broken": Justified(
        "a site whose robots.txt answers 5xx is left alone (RFC 9309, 2.3.1.4)",
        lambda _, ours: [list(item) for item in ours.runs[0]["items"]][-1] == ["failed"],
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
        assert allowed.holds(plain, ours), allowed.reason
        return
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
