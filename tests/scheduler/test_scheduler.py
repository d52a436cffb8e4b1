from types import SimpleNamespace
from unittest.mock import MagicMock, Mock, call

import numpy as np
import pytest
from judged import judged
from scrapy import Request
from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.exceptions import DownloadCancelledError
from scrapy.pqueues import ScrapyPriorityQueue
from scrapy.settings import Settings
from scrapy.squeues import LifoMemoryQueue
from twisted.python import failure as twisted_failure
from uniform import UniformPolicy

from tres_scrapy import scheduler as module
from tres_scrapy.config.config import Config
from tres_scrapy.config.download import RestOptions
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import JUDGE_ENDED, Failure
from tres_scrapy.downloader.delay import SharedAddresses
from tres_scrapy.downloader.refusal import FetchRefusedError
from tres_scrapy.downloader.request import ASIDE, LEASE, SAMPLE
from tres_scrapy.extensions import step as step_module
from tres_scrapy.extensions import waking
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.scheduler import TreeFrontierScheduler

ALL_NEW = RestOptions(new_hosts=1.0)  # hosts that never answered may take all slots


class Judge:
    """A reward model that knows nothing."""

    def action_features(self, urls, anchors):
        return np.zeros((len(urls), 3), dtype=np.float32)


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=100.0, calls=[])
    monkeypatch.setattr(module, "monotonic", lambda: clock.now)

    def call_later(delay, function):
        call = SimpleNamespace(delay=delay, function=function, cancelled=False)
        call.cancel = lambda: setattr(call, "cancelled", True)
        clock.calls.append(call)
        return call

    monkeypatch.setattr(waking, "call_later", call_later)
    return clock


def own_queue(crawler):
    """Scrapy's scheduler in memory, for a crawler without statistics."""
    stats = SimpleNamespace(inc_value=lambda *_: None)
    queues = {"mqclass": LifoMemoryQueue, "pqclass": ScrapyPriorityQueue}
    queue = Scheduler(RFPDupeFilter(), stats=stats, **queues)
    queue.crawler = crawler
    return queue


def redirected(request, url):
    """The request that Scrapy sends after a redirect to `url`."""
    return request.replace(url=url, meta=request.meta | {"redirect_urls": [request.url]})


def fail(request, error):
    """Call the errback of a request as Scrapy does when its download fails."""
    failure = twisted_failure.Failure(error)
    failure.request = request
    return request.errback(failure)


def scheduler_of(
    *urls,
    slots=None,
    cap=None,
    limit=None,
    shared=None,
    rest=ALL_NEW,
    follows_all=True,
    job=None,
    **settings,
):
    """A scheduler over the seeds `urls`; `slots` are the downloader's, by host."""
    stats = SimpleNamespace(set_value=lambda *_: None, inc_value=lambda *_: None)
    crawler = SimpleNamespace(
        stats=stats,
        settings=Settings(
            {"CONCURRENT_REQUESTS": 16, "CONCURRENT_REQUESTS_PER_DOMAIN": 1} | settings
        ),
        engine=SimpleNamespace(
            downloader=SimpleNamespace(slots=slots or {}),
            _slot=SimpleNamespace(
                nextcall=SimpleNamespace(schedule=lambda: None),
                inprogress=MagicMock(**{"__contains__.return_value": True}),
            ),
        ),
    )
    store = SampleStore(DomainLedger(cap))
    crawl = Crawl(store, UniformPolicy(store), limit)
    learner = CrawlSession(
        crawl, Judge(), config=Config(rest=rest), follows_all=follows_all, job=job
    )
    scheduler = TreeFrontierScheduler(crawler, learner, own_queue(crawler), shared)
    scheduler.open(None)
    for url in urls:
        assert scheduler.enqueue_request(Request(url))
    return scheduler, crawl


def a_job():
    """A job that saves everything."""
    kept = {f"{name}.return_value": {} for name in ("requests", "rests")}
    return Mock(failed=False, **kept, **{"write.return_value": True})


def slot(delay=0.0, concurrency=1, lastseen=0.0, jitter=0.0):
    return SimpleNamespace(delay=delay, concurrency=concurrency, lastseen=lastseen, jitter=jitter)


def outlinks(*urls):
    """Links without anchors."""
    return Outlinks(list(urls), [""] * len(urls), np.zeros((len(urls), 3), dtype=np.float32))


def urls_of(scheduler):
    """Return every request that is available now."""
    return [request.url for request in iter(scheduler.next_request, None)]


def test_crawl_is_told_which_hosts_are_busy(clock):
    """A shard says with it what it could fetch now."""
    scheduler, crawl = scheduler_of("http://a.test/", "http://a.test/2")
    request = scheduler.next_request()
    assert not len(crawl.available.busy)
    assert scheduler.next_request() is None
    assert list(crawl.available.busy) == [crawl.store["host"][request.meta[LEASE]]]


def test_slot_bounds_requests_of_host(clock):
    urls = [f"http://a.test/{i}" for i in range(3)]
    for concurrency in (1, 2):
        scheduler, _ = scheduler_of(*urls, slots={"a.test": slot(concurrency=concurrency)})
        assert len(urls_of(scheduler)) == concurrency


def test_sent_request_frees_its_host(clock):
    scheduler, _ = scheduler_of("http://a.test/1", "http://a.test/2")
    request = scheduler.next_request()
    assert scheduler.next_request() is None
    scheduler.request_left_downloader(request, spider=None)
    assert scheduler.next_request().url == "http://a.test/2"


def test_host_rests_after_transfer(clock):
    slots = {"a.test": slot(delay=2.0, lastseen=101.0)}
    scheduler, _ = scheduler_of("http://a.test/1", "http://a.test/2", slots=slots)
    request = scheduler.next_request()
    clock.now = 101.5
    scheduler.request_left_downloader(request, spider=None)
    for now, ready in ((102.9, False), (103.1, True)):
        clock.now = now
        assert bool(urls_of(scheduler)) is ready


def test_unsent_request_needs_no_rest(clock):
    slots = {"a.test": slot(delay=2.0, lastseen=97.0)}
    scheduler, crawl = scheduler_of("http://a.test/1", "http://a.test/2", slots=slots)
    request = scheduler.next_request()
    assert scheduler.next_request() is None
    fail(request, FetchRefusedError("Forbidden by robots.txt", "robots"))
    assert crawl.failures == {"robots": 1}
    assert scheduler.next_request().url == "http://a.test/2"


def test_jitter_waits_in_frontier(clock):
    slots = {"a.test": slot(delay=2.0, jitter=0.5, lastseen=100.0)}
    scheduler, _ = scheduler_of("http://a.test/1", "http://a.test/2", slots=slots)
    scheduler.request_left_downloader(scheduler.next_request(), spider=None)
    clock.now = 102.9
    assert scheduler.next_request() is None


@pytest.mark.parametrize("concurrency", [1, 2])
def test_hosts_of_one_address_share_a_slot(clock, concurrency):
    shared = SharedAddresses()
    urls = [f"http://{host}.test/{i}" for i in range(3) for host in "abc"]
    slots = {"a.test": slot(delay=5.0, concurrency=concurrency)}
    scheduler, _ = scheduler_of(*urls, slots=slots, shared=shared)
    sent = [scheduler.next_request() for _ in "abc"]  # each host once: no address is known yet
    for host in "abc":
        shared.note(f"{host}.test", ["93.184.216.34"] if host != "c" else ["93.184.216.35"])
    clock.now = 106.0  # the delay of all is over
    scheduler.request_left_downloader(sent[2], spider=None)
    assert [request.url for request in [scheduler.next_request()]] == ["http://c.test/1"]
    assert scheduler.next_request() is None  # a and b fill one slot
    scheduler.request_left_downloader(sent[0], spider=None)
    scheduler.request_left_downloader(sent[1], spider=None)
    slots["a.test"].lastseen = 106.0
    assert scheduler.next_request().url == "http://a.test/1"
    assert scheduler.next_request() is None  # b rests with a


def test_domain_holds_a_quarter_while_others_wait(clock):
    many = [f"http://h{i}.big.test/" for i in range(12)]
    scheduler, _ = scheduler_of(*many, "http://a.test/", CONCURRENT_REQUESTS=8)
    sent = [request.url for request in (scheduler.next_request() for _ in range(3))]
    assert sent == [*many[:2], "http://a.test/"]
    assert len(urls_of(scheduler)) == 5, "no other waits: the domain may have all"


def test_host_may_have_what_the_setting_says(clock):
    urls = [f"http://a.test/{i}" for i in range(4)]
    options = {"CONCURRENT_REQUESTS": 8, "CONCURRENT_REQUESTS_PER_DOMAIN": 4}
    slots = {"a.test": slot(concurrency=4)}
    scheduler, _ = scheduler_of(*urls, "http://b.test/", slots=slots, **options)
    assert urls_of(scheduler) == [*urls, "http://b.test/"]


def test_first_free_host_wakes_engine(clock):
    slots = {"a.test": slot(delay=3.0), "b.test": slot(delay=2.0)}
    urls = [f"http://{host}.test/{i}" for host in "ab" for i in range(2)]
    scheduler, _ = scheduler_of(*urls, slots=slots)
    woken = []
    scheduler._crawler.engine._slot.nextcall.schedule = lambda: woken.append(True)
    assert len(urls_of(scheduler)) == 2
    assert clock.calls[-1].delay == pytest.approx(2.0)
    clock.calls[-1].function()
    assert woken == [True]
    scheduler.next_request()
    assert len([call for call in clock.calls[1:] if not call.cancelled]) == 1


@pytest.mark.parametrize(
    ("settings", "patient"),
    [
        ({"TRES_PAGES": 9}, True),
        ({}, False),
        ({"TRES_PAGES": 9, "CLOSESPIDER_TIMEOUT": 60}, False),
        ({"TRES_HURRY": 0.0, "CLOSESPIDER_TIMEOUT": 60}, True),
    ],
)
def test_crawl_with_page_budget_waits_for_hosts_that_are_soon_free(clock, settings, patient):
    urls = [f"http://{name}.test/{page}" for name in "ab" for page in (1, 2)]
    slots = {"a.test": slot(delay=1.0), "b.test": slot(delay=60.0)}
    scheduler, crawl = scheduler_of(*urls, slots=slots, **settings)
    for _ in slots:
        scheduler.next_request()
    scheduler.next_request()
    names = [crawl.store.hosts.names[host] for host in crawl.available.soon]
    assert names == (["a.test"] if patient else [])


def test_concurrency_bounds_open_samples(clock):
    urls = [f"http://{i}.test/" for i in range(5)]
    scheduler, crawl = scheduler_of(*urls, CONCURRENT_REQUESTS=3)
    requests = list(iter(scheduler.next_request, None))
    assert len(requests) == 3
    scheduler.request_left_downloader(requests[0], spider=None)
    assert scheduler.next_request() is None, "what is not yet judged counts"
    crawl.book(requests[0].meta[LEASE], Failure("kind"))
    assert scheduler.next_request() is not None


def test_single_concurrency_ignores_hosts(clock):
    slots = {"a.test": slot(delay=9.0, lastseen=100.0)}
    urls = ("http://a.test/1", "http://a.test/2", "http://b.test/")
    scheduler, crawl = scheduler_of(*urls, slots=slots, CONCURRENT_REQUESTS=1)
    for url in urls[:2]:
        request = scheduler.next_request()
        assert request.url == url
        crawl.book(request.meta[LEASE], Failure("kind"))


def test_foreign_request_keeps_callback(clock):
    scheduler, _ = scheduler_of()
    callback = print
    asked = Request("http://a.test/", callback=callback, meta={"own": 1}, cb_kwargs={"a": 2})
    assert scheduler.enqueue_request(asked)
    request = scheduler.next_request()
    assert (request.callback, request.cb_kwargs) == (callback, {"a": 2})
    assert request.meta == {"own": 1, LEASE: 0}


def test_failure_is_booked_before_errback(clock):
    scheduler, crawl = scheduler_of()
    heard = []
    scheduler.enqueue_request(Request("http://a.test/", errback=heard.append))
    scheduler.enqueue_request(Request("http://b.test/"))
    error = DownloadCancelledError("too long")
    for _ in range(2):
        fail(scheduler.next_request(), error)
    assert [failure.value for failure in heard] == [error]
    assert heard[0].request.errback == heard.append
    assert crawl.failures == {"DownloadCancelledError": 2}
    assert not crawl.leased


def test_repeated_request_is_dropped(clock):
    scheduler, crawl = scheduler_of("http://a.test/")
    crawl.book(scheduler.next_request().meta[LEASE], Failure("kind"))
    assert not scheduler.enqueue_request(Request("http://a.test/"))
    assert scheduler.enqueue_request(Request("http://a.test/", dont_filter=True))
    assert urls_of(scheduler) == ["http://a.test/"]


@pytest.mark.parametrize(
    "request_",
    [
        Request("http://a.test/", method="POST"),
        Request("data:,text"),
        Request("http://a.test/?q=a", meta={ASIDE: True}),
    ],
)
def test_other_requests_pass_through(clock, request_):
    scheduler, crawl = scheduler_of()
    assert scheduler.enqueue_request(request_)
    assert scheduler.has_pending_requests()
    assert scheduler.next_request() is request_
    assert len(crawl.store) == 0


def test_retry_waits_for_free_host(clock):
    scheduler, crawl = scheduler_of("http://a.test/")
    request = scheduler.next_request()
    scheduler.enqueue_request(redirected(request, "http://b.test/"))
    again = scheduler.next_request()
    assert again.url == "http://b.test/"
    scheduler.request_left_downloader(again, spider=None)
    assert scheduler.enqueue_request(again.copy()), "a retry of where the redirect led"
    assert scheduler.next_request().url == "http://b.test/"
    assert crawl.leased == 1


def test_redirect_is_asked_for_without_dots():
    """Rules of robots.txt are for the path that the server sees."""
    scheduler, _ = scheduler_of("http://a.test/")
    request = scheduler.next_request()
    assert scheduler.enqueue_request(redirected(request, "http://a.test/x/../private/%2e/y?z=.."))
    assert scheduler.next_request().url == "http://a.test/private/y?z=.."


@pytest.mark.parametrize(
    ("target", "kind"),
    [("http://b.test/", "redirect_closed"), ("file:///etc", "redirect_not_http")],
)
def test_refused_redirect_ends_sample(clock, target, kind):
    scheduler, crawl = scheduler_of("http://a.test/", "http://b.test/")
    request = scheduler.next_request()
    scheduler.next_request()
    assert not scheduler.enqueue_request(redirected(request, target))
    assert crawl.failures == {kind: 1}


def test_retry_keeps_delay_and_wakes(clock):
    slots = {"a.test": slot(delay=2.0, lastseen=100.0)}
    scheduler, _ = scheduler_of("http://a.test/", slots=slots, CONCURRENT_REQUESTS=2)
    request = scheduler.next_request()
    scheduler.request_left_downloader(request, spider=None)
    scheduler.enqueue_request(request.copy())
    assert scheduler.next_request() is None
    assert clock.calls[-1].delay == pytest.approx(2.0)
    clock.now = 103.0
    assert scheduler.next_request().url == "http://a.test/"


def test_cached_redirect_frees_host(clock):
    scheduler, _ = scheduler_of("http://a.test/")
    request = scheduler.next_request()  # never reaches the downloader
    scheduler.enqueue_request(redirected(request, "http://a.test/new"))
    assert scheduler.next_request().url == "http://a.test/new"


def test_redirect_changes_the_slot(clock):
    scheduler, _ = scheduler_of("http://a.test/")
    request = scheduler.next_request()
    request.meta["download_slot"] = "a.test"
    scheduler.enqueue_request(redirected(request, "http://b.test/"))
    assert "download_slot" not in scheduler.next_request().meta


@pytest.mark.parametrize("works", [True, False])
def test_redirect_is_saved_before_it_is_sent(clock, works):
    saved, job = [], a_job()
    job.journal.redirect = lambda crawl, row: saved.append(crawl.store.url(row))
    scheduler, _ = scheduler_of("http://a.test/", job=job)
    request = scheduler.next_request()
    job.write = lambda save, *given: save(*given) or works
    job.book.return_value, job.failed = False, not works
    scheduler.enqueue_request(redirected(request, "http://b.test/"))
    assert saved == ["http://b.test/"]
    assert urls_of(scheduler) == ["http://b.test/"] * works


def test_own_request_keeps_its_secrets_at_its_host(clock):
    secrets = {"Authorization": "Basic x", "Cookie": "a=b", "Accept": "text/html"}
    for target, kept in (("http://a.test/2", 3), ("http://b.test/", 1), ("https://a.test/", 1)):
        scheduler, crawl = scheduler_of()
        scheduler.enqueue_request(Request("http://a.test/", headers=secrets, cookies={"c": "d"}))
        row = scheduler.next_request().meta[LEASE]
        crawl.redirect(row, target)
        crawl.set_back(row)
        again = scheduler.next_request()
        assert (again.url, len(again.headers), again.cookies) == (target, kept, {})


@pytest.mark.parametrize("held", [True, False])
def test_interrupted_fetch_stays_first_in_journal(clock, held):
    """Its slot of MAX is kept until its page is booked, also in the next resumed crawl."""
    job = a_job()
    scheduler, crawl = scheduler_of("http://a.test/", job=job)
    crawl.store.hold([0] if held else [])
    row = scheduler.next_request().meta[LEASE]
    job.write = Mock()
    steps = scheduler._session.steps
    assert steps.set_back(row, Failure("http_503", passes=True), clock.now)
    assert job.write.call_args_list == [call(job.journal.set_back, row)] * (not held)


def test_host_of_fatal_page_rests(clock, monkeypatch):
    """Its pages cannot end the process that judges pages one after the other."""
    monkeypatch.setattr(step_module, "monotonic", lambda: clock.now)
    scheduler, crawl = scheduler_of("http://a.test/1", "http://a.test/2")
    first = scheduler.next_request()
    scheduler.request_left_downloader(first, spider=None)
    scheduler._session.steps.book(first.meta[LEASE], JUDGE_ENDED)
    assert crawl.failures == {"judge_error": 1}
    clock.now += 59
    assert scheduler.next_request() is None
    clock.now += 2
    assert scheduler.next_request().url == "http://a.test/2"


@pytest.mark.parametrize(("kind", "rests"), [("wall_challenge", True), ("wall_login", False)])
def test_host_of_challenge_rests(clock, monkeypatch, kind, rests):
    monkeypatch.setattr(step_module, "monotonic", lambda: clock.now)
    scheduler, crawl = scheduler_of("http://a.test/1", "http://a.test/2")
    first = scheduler.next_request()
    scheduler.request_left_downloader(first, spider=None)
    scheduler._session.steps.book(first.meta[LEASE], Failure.of_wall(kind))
    assert crawl.failures == {kind: 1}
    clock.now += 59
    assert (scheduler.next_request() is None) == rests


def test_redirect_to_itself_is_refused(clock):
    scheduler, crawl = scheduler_of("http://a.test/")
    request = scheduler.next_request()
    again = request.replace(meta=request.meta | {"redirect_urls": ["http://a.test/#x"]})
    assert not scheduler.enqueue_request(again)
    assert crawl.failures == {"redirect_closed": 1}


def test_rested_hosts_need_no_timer(clock):
    slots = {"a.test": slot(delay=2.0)}
    scheduler, _ = scheduler_of("http://a.test/", slots=slots, CONCURRENT_REQUESTS=1)
    scheduler.next_request()
    clock.now = 200.0
    assert scheduler.next_request() is None
    assert not clock.calls


def test_late_request_is_sent_once(clock):
    scheduler, crawl = scheduler_of("http://a.test/")
    announced = Request("http://b.test/", callback=print, meta={SAMPLE: 1})
    row = scheduler.next_request().meta[LEASE]
    zeros = np.zeros((1, 3), dtype=np.float32)
    crawl.book(row, judged(1.0), Outlinks(["http://b.test/"], [""], zeros))
    scheduler._session.requests.keep({1: announced})
    sent = scheduler.next_request()
    assert (sent.callback, sent.meta) == (print, {LEASE: 1})
    assert scheduler.enqueue_request(announced)
    assert scheduler.next_request() is None


class SeenHosts:
    """A filter of duplicates that takes all URLs of a host for one."""

    is_default = False

    def __init__(self):
        self.seen, self.dropped = set(), []

    def drops(self, request):
        host = request.url.split("/")[2]
        if host in self.seen:
            self.dropped.append(request.url)
        return host in self.seen or self.seen.add(host) is not None


def test_filter_is_asked_when_a_sample_is_scheduled(clock):
    """As Scrapy does: a request that a listener refuses before does not count as seen."""
    scheduler, crawl = scheduler_of("http://a.test/", follows_all=False)
    own = scheduler._session.requests
    own.dupefilter = SeenHosts()
    row = scheduler.next_request().meta[LEASE]
    urls = ["http://b.test/1", "http://b.test/2", "http://c.test/"]
    requests = {url: Request(url) for url in urls}
    rows = crawl.book(row, judged(False), outlinks(*urls)).outlinks
    own.keep(dict(zip(rows.tolist(), requests.values(), strict=True)))
    kept = [scheduler.enqueue_request(requests[url]) for url in urls[:2]]
    scheduler.request_scheduled(requests[urls[2]])  # and refused by another listener
    assert (kept, own.dupefilter.dropped) == ([True, False], ["http://b.test/2"])
    assert urls_of(scheduler) == ["http://b.test/1"]
    assert own.dupefilter.seen == {"b.test"}


def test_answered_lease_is_not_taken_back(clock):
    """A callback may hand a request with the meta of its answer to the engine."""
    scheduler, crawl = scheduler_of("http://a.test/", follows_all=False)
    request = scheduler.next_request()
    scheduler._session.requests.answered.add(request.meta[LEASE])
    assert scheduler.enqueue_request(Request("http://b.test/", meta=request.meta))
    assert crawl.leased == 1
    assert urls_of(scheduler) == ["http://b.test/"]


def test_replaced_request_gives_its_lease_back(clock):
    """A middleware may send another request, without our meta, instead of ours."""
    scheduler, crawl = scheduler_of("http://a.test/", follows_all=False)
    request = scheduler.next_request()
    slot_ = scheduler._crawler.engine._slot
    slot_.inprogress = {request}
    assert scheduler.next_request() is None
    assert crawl.leased == 1
    slot_.inprogress = set()
    assert scheduler.next_request() is None
    assert (crawl.leased, crawl.counts["data_answers"]) == (0, 1)


def test_copied_request_is_separate(clock):
    scheduler, crawl = scheduler_of("http://a.test/")
    request = scheduler.next_request()
    crawl.book(request.meta[LEASE], Failure("kind"))
    assert scheduler.enqueue_request(request.replace(url="http://b.test/"))
    assert urls_of(scheduler) == ["http://b.test/"]


def test_page_limit_ends_pending(clock):
    scheduler, crawl = scheduler_of("http://a.test/", "http://b.test/", limit=1)
    row = scheduler.next_request().meta[LEASE]
    assert scheduler.has_pending_requests()
    crawl.book(row, judged(1.0), NO_LINKS)
    assert not scheduler.has_pending_requests()


def test_full_domains_end_pending(clock):
    scheduler, crawl = scheduler_of("http://a.test/", cap=Cap(1, 1))
    row = scheduler.next_request().meta[LEASE]
    links = ["http://a.test/2", "http://a.test/3"]
    crawl.book(row, judged(1.0), Outlinks(links, links, np.zeros((2, 3), dtype=np.float32)))
    assert scheduler.next_request() is None
    assert not scheduler.has_pending_requests()


def test_request_of_booked_page_is_handed_out(clock):
    scheduler, crawl = scheduler_of("http://a.test/")
    request = scheduler.next_request()
    assert scheduler.enqueue_request(request.replace(dont_filter=True))
    crawl.book(request.meta[LEASE], Failure("kind"))
    again = scheduler.next_request()
    assert (again.url, LEASE in again.meta) == (request.url, False)


def test_request_of_dropped_sample_is_forgotten(clock):
    scheduler, crawl = scheduler_of("http://a.test/", "http://b.test/")
    requests = scheduler._session.requests
    assert 1 in requests
    crawl.store.ledger.book_failure(crawl.store["domain"][1])
    for _ in range(crawl.store.ledger.limits.failures):
        crawl.store.ledger.book_failure(crawl.store["domain"][1])
    crawl.store.drop(np.array([1]))
    assert 1 not in requests


@pytest.mark.parametrize(
    ("target", "times", "follows"),
    [
        ("http://b.test/", 7, True),
        ("http://b.test/", 8, False),
        ("http://www.a.test/", 10, True),
    ],
)
def test_last_redirects_lead_to_no_other_site(clock, target, times, follows):
    """Else a chain of redirects that ends at a URL that only redirects would close it."""
    scheduler, crawl = scheduler_of("http://a.test/", REDIRECT_MAX_TIMES=10)
    request = redirected(scheduler.next_request(), target)
    request.meta["redirect_times"] = times
    assert scheduler.enqueue_request(request) == follows
    assert crawl.store.closure.is_closed(target) == follows
