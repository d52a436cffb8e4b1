"""Sites with hours, and with a number of requests a day, by clocks that are set by hand."""

from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.http.request import NO_CALLBACK
from scrapy.settings import Settings
from test_scheduler import Judge, fail, outlinks, own_queue
from test_scheduler import clock as steady  # noqa: F401 - a fixture
from uniform import UniformPolicy

from tres_scrapy import scheduler
from tres_scrapy.config.config import Config
from tres_scrapy.config.visit import DAY, Hours, SiteRule, VisitOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.downloader.delay import HeldError
from tres_scrapy.downloader.request import FOR_SAMPLE, LEASE
from tres_scrapy.extensions import waking
from tres_scrapy.extensions.job import Job, now
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.middlewares import visit
from tres_scrapy.middlewares.visit import VisitMiddleware
from tres_scrapy.run.journal import Journal
from tres_scrapy.scheduler import TreeFrontierScheduler
from tres_scrapy.url.message import TresError

NIGHT = Hours.parse("22:00-06:00")
MIDNIGHT = 20_000.0 * DAY
HOUR = 3600.0


@pytest.fixture
def day(monkeypatch):
    """The time of day, in seconds since 1970."""
    day = SimpleNamespace(now=MIDNIGHT + 12 * HOUR)
    for module in (scheduler, visit, waking):
        monkeypatch.setattr(module, "time", lambda: day.now)
    return day


class World:
    """A crawl of some pages with a scheduler and the last middleware before the network."""

    def __init__(self, *urls, directory=None, options=VisitOptions(), **settings):  # noqa: B008
        settings = {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 1} | settings
        stats = SimpleNamespace(set_value=lambda *_: None, inc_value=lambda *_: None)
        nextcall = SimpleNamespace(schedule=lambda: None)
        engine = SimpleNamespace(
            downloader=SimpleNamespace(slots={}), _slot=SimpleNamespace(nextcall=nextcall)
        )
        crawler = SimpleNamespace(stats=stats, settings=Settings(settings), engine=engine)
        store = SampleStore(DomainLedger())
        self.crawl = Crawl(store, UniformPolicy(store))
        spider, job = SimpleNamespace(follow_every_link=True), None
        if directory is not None:
            job = Job(Journal.open(directory, {}, now()), spider, print)
        self.session = CrawlSession(self.crawl, Judge(), job=job, config=Config(visits=options))
        self.scheduler = TreeFrontierScheduler(crawler, self.session, own_queue(crawler))
        self.scheduler.open(None)
        self.gate = VisitMiddleware(self.session)
        if not store.pending:
            self.crawl.add_seeds(outlinks(*urls))

    def fetch(self):
        """Send all requests that are available, and book them; return their URLs."""
        sent = []
        while (request := self.scheduler.next_request()) is not None:
            try:
                self.gate.process_request(request)
            except HeldError as error:
                fail(request, error)
                continue
            self.scheduler.request_left_downloader(request, spider=None)
            self.crawl.book(request.meta[LEASE], None)
            sent.append(request.url)
        return sent


A = [f"http://a.test/{i}" for i in range(5)]
B = [f"http://b.test/{i}" for i in range(3)]


def test_closed_site_waits_for_its_hours(day, steady, caplog):  # noqa: F811
    caplog.set_level("INFO")
    sites = (SiteRule("b.test", NIGHT),)
    world = World(*A, *B, options=VisitOptions(sites=sites))
    assert sorted(world.fetch()) == A
    assert world.scheduler.next_request() is None
    assert caplog.text.count("Links that wait: 3, all on sites that are closed") == 1, "said once"
    assert "the crawl goes on at 22:00 UTC, in 10 h 0 min" in caplog.text
    assert world.scheduler.has_pending_requests(), "it waits, and does not end"
    assert world.session.sites.opens_at == MIDNIGHT + 22 * HOUR
    assert steady.calls[-1].delay == 10 * HOUR, "and sleeps until then"
    day.now = MIDNIGHT + 22 * HOUR
    assert sorted(world.fetch()) == B
    assert world.session.sites.opens_at is None


def test_finished_crawl_waits_for_nothing(day, steady, caplog):  # noqa: F811
    caplog.set_level("INFO")
    world = World(*A, options=VisitOptions(per_day=2))
    world.crawl.limit = 0
    assert world.fetch() == []
    assert not world.scheduler.has_pending_requests()
    assert not caplog.messages
    assert world.session.sites.opens_at is None


@pytest.mark.parametrize("at_once", [1, 16])
def test_site_gets_its_requests_of_each_day(day, steady, at_once):  # noqa: F811
    options = VisitOptions(per_day=2)
    world = World(*A, *B, options=options, CONCURRENT_REQUESTS=at_once)
    assert len(world.fetch()) == 4
    assert world.scheduler.has_pending_requests()
    assert steady.calls[-1].delay == 12 * HOUR
    day.now = MIDNIGHT + DAY
    assert len(world.fetch()) == 3
    day.now += DAY
    assert len(world.fetch()) == 1
    assert not world.scheduler.has_pending_requests()


def test_robots_txt_is_one_of_them(day, steady):  # noqa: F811
    """It takes the last one: its page waits, and holds nothing up."""
    world = World(*A, options=VisitOptions(per_day=2))
    world.session.sites.note("a.test", day.now)
    page = world.scheduler.next_request()
    robots = Request("http://a.test/robots.txt", callback=NO_CALLBACK, meta={FOR_SAMPLE: True})
    world.gate.process_request(robots)
    with pytest.raises(HeldError) as held:
        world.gate.process_request(page)
    fail(page, held.value)
    assert not world.crawl.leased
    assert world.fetch() == []
    with pytest.raises(HeldError):
        world.gate.process_request(robots)


def test_other_requests_are_counted_only(day, steady):  # noqa: F811
    world = World(*A, options=VisitOptions(per_day=2))
    for _ in range(3):
        world.gate.process_request(Request("http://a.test/tdmrep.json", callback=NO_CALLBACK))
    assert world.fetch() == []


def test_redirect_to_a_closed_site_waits(day, steady):  # noqa: F811
    world = World(A[0], options=VisitOptions(sites=(SiteRule("b.test", NIGHT),)))
    request = world.scheduler.next_request()
    moved = request.replace(url=B[0], meta=request.meta | {"redirect_urls": [request.url]})
    assert world.scheduler.enqueue_request(moved)
    assert world.scheduler.next_request() is None
    assert not world.crawl.leased
    day.now = MIDNIGHT + 23 * HOUR
    assert world.fetch() == [B[0]]


def test_requests_of_the_day_survive_a_kill(tmp_path, day, steady):  # noqa: F811
    options = VisitOptions(per_day=2)
    world = World(*A, directory=tmp_path, options=options)
    assert len(world.fetch()) == 2
    world.session.job.journal.database.close()  # without a farewell
    day.now += HOUR
    again = World(*A, directory=tmp_path, options=options)
    again.crawl.add_seeds(outlinks(*A))
    assert again.fetch() == []
    day.now = MIDNIGHT + DAY
    assert len(again.fetch()) == 2


@pytest.mark.parametrize("value", ["5", "a b", "1 2 3"])
def test_damaged_count_is_refused(tmp_path, day, value):
    world = World(*A, directory=tmp_path)
    world.session.job.journal.note("requests of a.test", value)
    world.session.job.engine_stopped()
    with pytest.raises(TresError, match="damaged"):
        World(*A, directory=tmp_path, options=VisitOptions(per_day=2))


@pytest.mark.parametrize(
    ("seconds", "text"), [(1, "1 min"), (60, "1 min"), (3599, "1 h 0 min"), (27_600, "7 h 40 min")]
)
def test_time_until_a_site_opens_is_in_minutes(seconds, text):
    assert waking.in_hours(seconds) == text
