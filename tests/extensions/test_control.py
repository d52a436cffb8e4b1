"""Steering a crawl; test_dashboard.py steers a crawl that is really running."""

import json
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from judged import judged
from scrapy import Request, Spider
from scrapy.settings import Settings

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.extensions import control as module
from tres_scrapy.extensions.control import ENDING, PAUSED, RUNNING, Control
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.live.steering import LONGEST, ControlError
from tres_scrapy.scheduler import TreeFrontierScheduler
from tres_scrapy.spiders.tres import TresSpider

A, B = "http://a.org/", "http://b.org/"


class Judge:
    """A reward model that knows nothing."""

    def action_features(self, urls, anchors):
        return np.zeros((len(urls), 3), dtype=np.float32)


class Engine:
    """The parts of Scrapy's engine that are used: it pauses, schedules and wakes."""

    def __init__(self, crawler):
        self.paused, self.woken = False, 0
        self.downloader = SimpleNamespace(slots={})
        self._slot = SimpleNamespace(nextcall=SimpleNamespace(schedule=self._wake))
        self.scheduler = TreeFrontierScheduler(
            crawler, crawler.learner, Mock(**{"next_request.return_value": None})
        )

    def pause(self):
        self.paused = True

    def unpause(self):
        self.paused = False

    def crawl(self, request):
        self.scheduler.enqueue_request(request)

    def _wake(self):
        self.woken += 1


def control_of(*urls, cap=None, limit=None, spider=None, job=None, **settings):
    """A control over a crawl of the seeds `urls`; return it with its crawler."""
    store = SampleStore(DomainLedger(cap))
    crawl = Crawl(store, make_policy("tres", store, PolicyInputs()), limit)
    learner = CrawlSession(crawl, Judge())
    crawler = SimpleNamespace(settings=Settings(settings), learner=learner, crawling=True)
    crawler.spider = spider or TresSpider()
    crawler.engine = Engine(crawler)
    for url in urls:
        crawler.engine.crawl(Request(url))
    learner.job = job
    return Control(crawler, learner), crawler


def book(crawler, *outlinks):
    """Complete the next sample with a page that has links; return its URL."""
    crawl = crawler.learner.crawl
    row = crawl.next().row
    actions = np.zeros((len(outlinks), 3), dtype=np.float32)
    crawl.book(row, judged(1.0), Outlinks(outlinks, outlinks, actions))
    return crawl.store.url(row)


def test_pause_and_resume_drive_engine():
    control, crawler = control_of(A)
    assert control.state == RUNNING
    assert control.pause().startswith("Paused")
    assert (control.state, crawler.engine.paused) == (PAUSED, True)
    assert control.resume() == "Resumed."
    assert (control.state, crawler.engine.paused, crawler.engine.woken) == (RUNNING, False, 1)


def test_stop_is_final(monkeypatch):
    control, crawler = control_of(A)
    crawler.stop_async = lambda: "the coroutine"
    started = []
    monkeypatch.setattr(module, "deferred_from_coro", started.append)
    assert control.stop().startswith("Stopping")
    assert started == ["the coroutine"]
    assert control.state == ENDING
    for ask in (control.pause, control.resume, control.stop, lambda: control.add_seed(B)):
        with pytest.raises(ControlError, match=r"^The crawl is ending$"):
            ask()


def test_ctrl_c_shows_as_ending():
    control, crawler = control_of(A)
    crawler.crawling = False
    assert control.state == ENDING


def test_repeated_request_is_refused():
    control, _ = control_of(A)
    with pytest.raises(ControlError, match=r"^The crawl is running$"):
        control.resume()
    control.pause()
    with pytest.raises(ControlError, match=r"^The crawl is paused$"):
        control.pause()


def test_seed_is_fetched_next_whatever_waits():
    control, crawler = control_of(A)
    book(crawler, *(f"http://c.org/{i}" for i in range(20)))
    assert control.add_seed(f" {B}x#top, HTTP://D.org") == "Next: http://b.org/x, http://d.org/."
    assert [book(crawler), book(crawler)] == ["http://b.org/x", "http://d.org/"]


def test_good_seed_is_added_beside_a_bad_one():
    control, crawler = control_of(A)
    said = control.add_seed(f"http://localhost/, {B}, mailto:x@a.test")
    assert said.startswith(f"Next: {B}. Not added: localhost is not on the public internet; ")
    assert "A seed must hold http(s) URLs" in said
    assert [book(crawler), book(crawler)] == [A, B]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "A seed must hold http(s) URLs such as https://example.org/, '' is not one"),
        ("tea", "A seed must hold http(s) URLs such as https://example.org/, 'tea' is not one"),
        ("javascript:alert(1)", "A seed must hold http(s) URLs"),
        ("file:///etc/passwd", "A seed must hold http(s) URLs"),
        ("@/etc/passwd", "A file of seeds (@FILE) is read only at the start"),
        (" @/etc/passwd", "A file of seeds (@FILE) is read only at the start"),
        ("mailto:x@b.org, ftp://b.org/", "A seed must hold http(s) URLs"),
        ("http://127.0.0.1:8080/", "127.0.0.1 is not on the public internet; to allow it, start"),
        ("http://2130706433/", "is not on the public internet"),
        ("http://[::1]/", "is not on the public internet"),
        ("http://printer.local/", "printer.local is not on the public internet"),
        (A, f"{A} has been fetched or is being fetched"),
        ("http://www.full.org/more", "full.org has reached MAX or fails too often"),
        ("x" * (LONGEST + 1), "Too long: 8,000 characters at most"),
    ],
)
def test_bad_seed_is_one_line(text, complaint):
    control, crawler = control_of(A, "http://full.org/", cap=Cap(1, 1))
    book(crawler)
    book(crawler)
    before = len(crawler.learner.crawl.store)
    with pytest.raises(ControlError) as error:
        control.add_seed(text)
    assert str(error.value).startswith(complaint) or complaint in str(error.value)
    assert "\n" not in str(error.value)
    assert len(crawler.learner.crawl.store) == before


def test_private_seed_needs_permission():
    control, _ = control_of(A, TRES_PRIVATE_ADDRESSES="1")
    assert control.add_seed("http://127.0.0.1:8080/") == "Next: http://127.0.0.1:8080/."


def test_foreign_spider_refuses_seed():
    control, _ = control_of(A, spider=Spider("other"))
    with pytest.raises(ControlError, match=r"^The spider 'other' has no parse\(\)"):
        control.add_seed(B)


def test_seed_after_end_is_refused():
    control, crawler = control_of(A, limit=1)
    book(crawler)
    with pytest.raises(ControlError, match=r"^All pages asked for are fetched: 1$"):
        control.add_seed(B)


def test_raised_max_returns_links():
    control, crawler = control_of(A)
    assert control.change_max("2") == "MAX is 2 from now on."
    book(crawler, f"{A}1", f"{A}2", f"{A}3")
    book(crawler, f"{A}4")  # of a domain that is full: not kept
    assert crawler.learner.crawl.next() is None
    assert control.change_max("3") == "MAX is 3 from now on; back in the frontier: 2 links."
    assert crawler.engine.woken == 2
    assert book(crawler).startswith(A)


@pytest.mark.parametrize(
    ("text", "limit", "complaint"),
    [
        ("ten", 9, "MAX 'ten' must be a number, two like 5_2, or none"),
        ("2_5", 9, "MAX '2_5' must not rise: write 5_2"),
        ("5_2", None, "MAX 5_2 depends on the share of pages done: pages must be set"),
        ("1" * (LONGEST + 1), 9, "Too long: 8,000 characters at most"),
    ],
)
def test_bad_max_changes_nothing(text, limit, complaint):
    control, crawler = control_of(A, cap=Cap(7, 7), limit=limit)
    with pytest.raises(ControlError) as error:
        control.change_max(text)
    assert str(error.value).startswith(complaint)
    assert crawler.learner.crawl.store.ledger.cap == Cap(7, 7)


def test_max_may_be_adaptive_or_none():
    control, crawler = control_of(A, limit=30)
    assert control.change_max(" 5_2 ") == "MAX is 5_2 from now on."
    assert crawler.learner.crawl.store.ledger.cap == Cap(5, 2)
    assert control.change_max(f"{10**30}") == f"MAX is {10**30} from now on."
    assert book(crawler) == A
    assert control.change_max("none") == "MAX is none from now on."
    assert crawler.learner.crawl.store.ledger.cap is None


def test_requests_are_kept_in_jobdir():
    written = []
    job = SimpleNamespace(
        journal=SimpleNamespace(save=lambda crawl: crawl.store.url(len(crawl.store) - 1)),
        write=lambda save, crawl: written.append(save(crawl)) or True,
        note_cap=lambda cap: written.append(cap) or len(written) < 3,
        keep=lambda requests: None,
    )
    control, _ = control_of(A, job=job)
    control.add_seed(B)
    control.change_max("9")
    assert written == [B, Cap(9, 9)]
    with pytest.raises(ControlError, match=r"^JOBDIR cannot be written: the crawl stops$"):
        control.change_max("8")


def test_distrusted_site_is_not_fetched_any_more():
    notes = []
    job = SimpleNamespace(
        journal=SimpleNamespace(note=lambda *values: notes.append(values)),
        write=lambda save, *values: save(*values) or True,
    )
    control, crawler = control_of(A)
    crawl = crawler.learner.crawl
    book(crawler, "http://good.org/")
    own = {f"http://{name}.org/" for n in range(9) for name in (f"deep{n}.farm", f"new{n}")}
    urls = {"http://farm.org/": [*sorted(own), "http://both.org/"]}
    urls["http://good.org/"] = ["http://farm.org/", "http://both.org/"]
    fetched = set()
    while "http://farm.org/" not in fetched:
        fetched.add(_fetch(crawl, urls))
    assert (left := own - fetched)
    crawler.learner.job = job
    assert control.distrust(" Farm.org ").startswith("Nothing more of farm.org is fetched. To take")
    assert json.loads(notes[0][1]) == [[], ["farm.org"]]
    assert crawl.store.closure.is_closed("http://farm.org/never")
    fetched.update(iter(lambda: _fetch(crawl, {}), None))
    assert "http://both.org/" in fetched
    assert not left & fetched


def test_links_of_a_distrusted_page_under_way_are_not_taken():
    control, crawler = control_of(A)
    crawl = crawler.learner.crawl
    book(crawler, f"{B}1", f"{B}2")
    _fetch(crawl, {})
    row = crawl.next().row
    control.distrust("b.org")
    actions = np.zeros((1, 3), dtype=np.float32)
    crawl.book(row, judged(1.0), Outlinks(["http://c.org/"], [""], actions))
    assert crawl.next() is None


def test_site_that_was_not_fetched_is_not_distrusted():
    control, _ = control_of(A)
    with pytest.raises(ControlError, match=r"No page of 'b\.org' was fetched"):
        control.distrust("b.org")


def _fetch(crawl, links):
    """Complete the next sample with the links of its URL; return the URL, None without one."""
    decision = crawl.next()
    if decision is None:
        return None
    url = crawl.store.url(decision.row)
    outlinks = links.get(url, [])
    actions = np.zeros((len(outlinks), 3), dtype=np.float32)
    crawl.book(decision.row, judged(1.0), Outlinks(outlinks, outlinks, actions))
    return url
