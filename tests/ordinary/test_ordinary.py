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
    """What may differ, why (docs/embed.md), and what must hold nevertheless."""

    kinds: frozenset[str]
    reason: str
    holds: Callable[[Crawled, Crawled], bool]


JUSTIFIED: dict[str, Justified] = {}


@pytest.fixture(scope="module")
def crawled():
    """Both crawls of each spider."""
    return crawl_both(interpreter().path)


@pytest.mark.parametrize("name", SPIDERS)
def test_spider_works_as_without_addon(crawled, name):
    plain, ours = crawled[0][name], crawled[1][name]
    found = differences(plain, ours, ordered=SPIDERS[name].ordered)
    if (allowed := JUSTIFIED.get(name)) is not None:
        assert found.keys() & allowed.kinds, f"{name} needs no justification any more"
        assert allowed.holds(plain, ours), allowed.reason
        found = {kind: lines for kind, lines in found.items() if kind not in allowed.kinds}
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
