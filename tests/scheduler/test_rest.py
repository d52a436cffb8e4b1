"""Pauses that hosts ask for by Retry-After, with a clock that is set by hand."""

from datetime import UTC, datetime
from email.utils import format_datetime
from types import SimpleNamespace

import pytest
from scrapy import Request
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.spidermiddlewares.httperror import HttpError
from test_scheduler import Judge, outlinks
from uniform import UniformPolicy

from tres_scrapy.config.config import Config
from tres_scrapy.config.download import RestOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.downloader import refusal
from tres_scrapy.downloader.refusal import failure_of
from tres_scrapy.extensions import step as module
from tres_scrapy.extensions.job import Job
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.ledger import ANY_HOST, DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.run.identity import now
from tres_scrapy.run.journal import Journal
from tres_scrapy.url.message import TresError

URLS = ("http://a.test/", "http://b.test/")
WALL = 1_800_000_000.0  # seconds since 1970
NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock(monkeypatch):
    """A steady clock and the time of day, which a restart sets apart."""
    clock = SimpleNamespace(steady=50.0, wall=WALL)
    monkeypatch.setattr(module, "monotonic", lambda: clock.steady)
    monkeypatch.setattr(module, "time", lambda: clock.wall)
    return clock


def session_in(directory, **rest):
    """A session of two seeds in a JOBDIR, new or resumed."""
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, UniformPolicy(store))
    job = Job(Journal.open(directory, {}, now()), SimpleNamespace(follow_every_link=True), print)
    session = CrawlSession(crawl, Judge(), job=job, config=Config(rest=RestOptions(**rest)))
    if not store.pending:
        crawl.add_seeds(outlinks(*URLS))
    return session


def rest(session, clock, seconds, status=429):
    """Let the host of the next sample answer that it wants a pause; return its name."""
    row = session.steps.next(ANY_HOST).row
    assert session.steps.set_back(row, Failure.of_status(status, seconds), clock.steady)
    return session.crawl.store.hosts.names[session.crawl.store["host"][row]]


def resting(session, clock):
    names = session.crawl.store.hosts.names
    return [names[host] for host in session.health.resting(clock.steady)]


@pytest.mark.parametrize("status", [429, 503])
def test_pause_survives_a_resume_to_the_second(tmp_path, clock, status):
    session = session_in(tmp_path)
    name = rest(session, clock, 600.0, status)
    session.job.engine_stopped()
    clock.steady, clock.wall = 7.0, WALL + 100  # another process
    session = session_in(tmp_path)
    assert resting(session, clock) == [name]
    assert session.health.until(clock.steady) == pytest.approx(507.0, abs=0.01)
    clock.steady = 507.1
    assert resting(session, clock) == []


def test_pause_that_is_over_is_forgotten(tmp_path, clock):
    session = session_in(tmp_path)
    rest(session, clock, 60.0)
    session.job.engine_stopped()
    clock.wall += 61
    assert resting(session_in(tmp_path), clock) == []


def test_pause_that_no_host_asked_for_is_forgotten(tmp_path, clock):
    session = session_in(tmp_path)
    rest(session, clock, None)
    session.job.engine_stopped()
    assert resting(session_in(tmp_path), clock) == []


def test_resumed_pause_is_bounded(tmp_path, clock):
    """The time of day may have been set back meanwhile."""
    session = session_in(tmp_path)
    rest(session, clock, 600.0)
    session.job.engine_stopped()
    clock.wall -= 10**7
    session = session_in(tmp_path, longest=50.0)
    assert session.health.until(clock.steady) == 100.0


@pytest.mark.parametrize("value", ["soon http_429", "1e9 http_429", "5", "5 a b"])
def test_damaged_pause_is_refused(tmp_path, clock, value):
    session = session_in(tmp_path)
    session.job.journal.note("rest of a.test", value)
    session.job.engine_stopped()
    with pytest.raises(TresError, match="damaged"):
        session_in(tmp_path)


def test_date_and_seconds_mean_the_same(monkeypatch):
    monkeypatch.setattr(refusal, "datetime", SimpleNamespace(now=lambda _: NOW))
    date = format_datetime(datetime(2026, 6, 1, 12, 1, 30, tzinfo=UTC), usegmt=True)
    for text in ("90", date):
        answer = Response(URLS[0], 503, headers={"Retry-After": text})
        assert failure_of(HttpError(answer)) == Failure("http_503", passes=True, retry_after=90.0)


@pytest.mark.parametrize(("headers", "rests"), [({"Retry-After": "40"}, ["a.test"]), ({}, [])])
@pytest.mark.parametrize("status", [429, 503])
def test_sitemap_that_asks_for_a_pause_is_heard(tmp_path, clock, status, headers, rests):
    session = session_in(tmp_path)
    aside = Request("http://a.test/sitemap.xml", callback=NO_CALLBACK)
    session.steps.note_answer(Response(aside.url, status, headers), aside)
    assert resting(session, clock) == rests
    assert session.health.until(clock.steady) in {None, clock.steady + 40}
