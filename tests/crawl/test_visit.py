"""Sites that are closed by day, or after their last request of the day."""

import numpy as np
import pytest

from tres_scrapy.config.visit import DAY, Hours, SiteRule, VisitOptions
from tres_scrapy.crawl.visit import Visit, Visits
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, Eligibility, SampleStore

NIGHT = Hours.parse("22:00-06:00")
MIDNIGHT = 20_000.0 * DAY
HOUR = 3600.0
NAMES = ("a.test", "b.test", "c.test")


def visits_of(*sites, hours=None, per_day=None, names=NAMES):
    """The visits of some sites with one waiting link each, and their store."""
    store = SampleStore(DomainLedger())
    urls = [f"http://{name}/" for name in names]
    store.add(NO_PARENT, Outlinks(urls, urls, np.zeros((len(urls), 3), dtype=np.float32)))
    return Visits(store.ledger, VisitOptions(hours, per_day, sites)), store


def closed(visits, now):
    names = visits._ledger.names
    return [name for name, each in zip(names, visits.closed(now), strict=False) if each]


def test_night_crosses_midnight():
    visits, _ = visits_of(hours=NIGHT)
    times = [21.99, 22, 23.9, 24, 29.9, 30, 45.9, 46]
    found = [closed(visits, MIDNIGHT + hour * HOUR) == [*NAMES] for hour in times]
    assert found == [True, False, False, False, False, True, True, False]
    assert visits.next_time(MIDNIGHT + 21 * HOUR) == MIDNIGHT + 22 * HOUR
    assert visits.next_time(MIDNIGHT + 23 * HOUR) is None


def test_exceptions_win_over_the_default():
    day, always = Hours.parse("08:00-20:00"), Hours()
    visits, _ = visits_of(SiteRule("a.test", day), SiteRule("www.b.test", always), hours=NIGHT)
    assert closed(visits, MIDNIGHT + 23 * HOUR) == ["a.test"]
    assert closed(visits, MIDNIGHT + 12 * HOUR) == ["c.test"]
    assert closed(visits, MIDNIGHT + 7 * HOUR) == ["a.test", "c.test"]
    assert visits.next_time(MIDNIGHT + 7 * HOUR) == MIDNIGHT + 8 * HOUR


def test_site_is_closed_until_the_next_day_of_utc():
    visits, _ = visits_of(SiteRule("b.test", None, 3), per_day=2)
    now = MIDNIGHT + 5 * HOUR
    assert [visits.note("www.a.test", now).requests for _ in range(2)] == [1, 2]
    visits.note("b.test", now)
    visits.note("b.test", now)
    assert closed(visits, now) == ["a.test"]
    assert visits.is_closed("other.a.test", now)
    assert not visits.is_closed("b.test", now)
    assert visits.next_time(now) == MIDNIGHT + DAY
    assert closed(visits, MIDNIGHT + DAY - 1) == ["a.test"]
    assert closed(visits, MIDNIGHT + DAY) == []
    assert visits.note("a.test", MIDNIGHT + DAY) == Visit("a.test", 20_001, 1)


def test_hours_and_requests_hold_together():
    visits, _ = visits_of(hours=Hours.parse("08:00-20:00"), per_day=2, names=["a.test"])
    now = MIDNIGHT + 9 * HOUR
    visits.note("a.test", now)
    visits.note("a.test", now)
    assert visits.next_time(now) == MIDNIGHT + DAY + 8 * HOUR


def test_fetches_under_way_count():
    visits, store = visits_of(per_day=2)
    store.lease(0)
    visits.note("a.test", MIDNIGHT)
    assert closed(visits, MIDNIGHT) == ["a.test"], "one was sent, the other will be"
    assert not visits.is_closed("a.test", MIDNIGHT), "this is the other"


def test_counts_of_an_earlier_run_go_on():
    visits, _ = visits_of(per_day=5)
    visits.restore([Visit("a.test", 20_000, 5), Visit("b.test", 19_999, 5)])
    assert closed(visits, MIDNIGHT + HOUR) == ["a.test"]
    assert closed(visits, MIDNIGHT + DAY) == []


def test_site_without_a_limit_is_not_noted():
    visits, _ = visits_of(SiteRule("a.test", None, 9))
    assert visits.note("b.test", MIDNIGHT) is None
    assert visits.note("a.test", MIDNIGHT).requests == 1


@pytest.mark.parametrize("hour", [12, 23])
def test_links_of_closed_sites_wait(hour):
    visits, store = visits_of(SiteRule("b.test", Hours()), hours=NIGHT)
    available = Availability(closed=visits.closed(MIDNIGHT + hour * HOUR))
    found = store.eligibility(np.arange(3), available).tolist()
    busy = Eligibility.BUSY if hour == 12 else Eligibility.READY
    assert found == [busy, Eligibility.READY, busy]
    assert store.may_be_ready(available)
    busy = [store.hosts.find("b.test")]
    assert store.may_be_ready(available._replace(busy=busy)) == (hour == 23)


def test_domain_found_later_follows_the_default():
    visits, store = visits_of(hours=NIGHT)
    available = Availability(closed=visits.closed(MIDNIGHT + 12 * HOUR))
    links = Outlinks(["http://new.test/"], [""], np.zeros((1, 3), dtype=np.float32))
    store.add(NO_PARENT, links)
    assert store.eligibility(np.array([3]), available).tolist() == [Eligibility.BUSY]
    assert not store.may_be_ready(available)
