"""The relevant pages that a crawl expects in its frontier, and the rules that end it."""

import numpy as np
import pytest

from tres_scrapy.config.limit import StopRule
from tres_scrapy.crawl.outlook import EVERY, QUIET, RECENT, TRUSTED, Left, Outlook


class Hosts:
    """Links that wait, by host."""

    def __init__(self, *pending):
        self._pending = np.array(pending)

    def waiting(self):
        return self._pending


class Store:
    def __init__(self, *pending):
        self.hosts = Hosts(*pending)
        self.pending = sum(pending)


def outlook_of(pending, *fetches):
    """Return an outlook after `fetches`, pairs of a host and whether the page was relevant."""
    outlook = Outlook(Store(*pending))
    for host, relevant in fetches:
        outlook.note(host, relevant=relevant)
    return outlook


def test_host_yields_what_its_last_fetches_did():
    good = outlook_of([100], *[(0, n % 2) for n in range(40)]).look()
    assert good.expected == pytest.approx(50, rel=0.05)
    assert good.low < 45
    assert good.high > 55
    dry = outlook_of([100], *[(0, True)] * 40, *[(0, False)] * RECENT).look()
    assert dry.expected < 5


def test_new_host_yields_what_first_fetches_did():
    firsts = [(n, n % 4 == 0) for n in range(40)]
    one = outlook_of([0] * 40 + [TRUSTED], *firsts).look()
    assert one.expected == pytest.approx(TRUSTED / 4, rel=0.1)
    assert outlook_of([0] * 40 + [1_000], *firsts).look().expected == one.expected
    assert outlook_of([0] * 40 + [0], *firsts).look() == Left(0.0, 0.0, 0.0)


def test_links_of_a_dry_host_do_not_promise_much():
    """Even very many: each fetch of a host lowers what the others are worth."""
    few, many = (outlook_of([5_000], *[(0, False)] * n).look() for n in (5, 40))
    assert many.expected < few.expected / 4


def test_it_looks_now_and_then():
    outlook = outlook_of([9], *[(0, True)] * (EVERY - 1))
    assert outlook.left is None
    assert outlook.figures() == {}
    outlook.note(0, relevant=True)
    assert outlook.figures()["relevant_left"] == outlook.left.expected > 8


def test_nothing_is_left_where_no_link_waits():
    fetches = [(0, True)] * (EVERY + 1)
    assert outlook_of([5], *fetches[2:]).at_end() is None  # it has not looked yet
    outlook = outlook_of([5], *fetches)
    assert outlook.at_end().expected > 3
    outlook._store = Store(0)
    assert outlook.at_end() is None
    assert outlook.figures()["relevant_left"] == 0


def test_interrupted_crawl_continues():
    fetches = [(n % 3, n % 5 == 0) for n in range(90)]
    whole = outlook_of([4, 5, 6], *fetches)
    resumed = Outlook(Store(4, 5, 6))
    hosts, found = (np.array(column) for column in zip(*fetches[:70], strict=True))
    resumed.restore(hosts, found)
    for host, relevant in fetches[70:]:
        resumed.note(host, relevant=relevant)
    assert resumed.look() == whole.look()
    assert (resumed.fetches, resumed.relevant) == (whole.fetches, whole.relevant)


@pytest.mark.parametrize(
    ("rule", "pending", "last", "stops"),
    [
        ("coverage:0.9", 50, 0, True),
        ("coverage:0.9", 5_000, 0, False),  # as much may be left as was found
        ("coverage:0.9", 50, QUIET // 20, False),  # it still finds some
        ("yield:0.02", 5_000, QUIET // 100, True),
        ("yield:0.02", 5_000, QUIET // 20, False),
    ],
)
def test_rules(rule, pending, last, stops):
    fetches = [(0, True)] * 200 + [(1, False)] * (QUIET - last) + [(1, True)] * last
    outlook = outlook_of([0, pending], *fetches)
    outlook.look()
    assert outlook.meets(StopRule.parse(rule)) == stops


def test_no_rule_ends_a_short_or_fruitless_crawl():
    short = outlook_of([0], *[(0, True)] * 100, *[(0, False)] * (QUIET - 125))
    assert short.left is not None
    assert not short.meets(StopRule.parse("coverage:0.5"))
    fruitless = outlook_of([0], *[(0, False)] * 2 * QUIET)
    assert not fruitless.meets(StopRule.parse("coverage:0.5"))
    assert fruitless.meets(StopRule.parse("yield:0.02"))


def test_left_is_said_plainly():
    said = "about 1,234 relevant pages left in reach (90 to 3,000)"
    assert str(Left(1234.4, 90.0, 3000.2)) == said
    assert "about 1 relevant page left" in str(Left(1.2, 0.0, 4.0))


@pytest.mark.parametrize("text", ["coverage", "coverage:0", "coverage:1", "yield:-0.1", "x:0.5"])
def test_other_rules_are_refused(text):
    with pytest.raises(ValueError, match="must be coverage:SHARE or yield:SHARE"):
        StopRule.parse(text)
    assert str(StopRule.parse("yield:.02")) == "yield:0.02"
