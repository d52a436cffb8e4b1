"""What the progress line says while no requests are sent."""

from collections import Counter
from types import SimpleNamespace

import pytest
from scrapy.settings import Settings

from tres_scrapy.extensions import progress as module
from tres_scrapy.extensions.progress import Progress
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.settings import USER_AGENT

FIGURES = {
    "pages": 2,
    "relevant_pages": 1,
    "relevant_domains": 1,
    "frontier_size": 5,
    "leaves": 1,
    "phase": "exploration",
}


class Loop:
    """A looping call without a reactor: it calls once."""

    def __init__(self, function, *given):
        self.start = lambda interval, now: function(*given)

    def stop(self):
        pass


REAL = "https://cooking.org/"


def opened(monkeypatch, *, paused=False, offline=False, opens_at=None, seed=REAL, **settings):
    """Open a crawl that reports once, and return its progress."""
    monkeypatch.setattr(module, "create_looping_call", Loop)
    crawl = SimpleNamespace(limit=9, leased=0, waits=False, figures=lambda: FIGURES)
    crawl.outlook = SimpleNamespace(at_end=lambda: None)
    health, sites = SimpleNamespace(in_doubt=offline), SimpleNamespace(opens_at=opens_at)
    session = SimpleNamespace(crawl=crawl, health=health, sites=sites, listeners=[])
    crawler = SimpleNamespace(
        settings=Settings({"TRES_TOPIC": "food", **settings}),
        engine=SimpleNamespace(paused=paused),
        stats=SimpleNamespace(get_value=lambda *_: 2.4),
        get_extension=lambda kind: session,
    )
    progress = Progress(crawler, 10.0, live=False)
    progress.spider_opened(SimpleNamespace(start_urls=[seed]))
    return progress


@pytest.mark.parametrize(
    ("paused", "offline", "said"),
    [(True, False, ", paused"), (False, True, ", network gone"), (False, False, ", 0.0 pages/s")],
)
def test_line_says_why_nothing_is_sent(caplog, monkeypatch, paused, offline, said):
    caplog.set_level("INFO")
    opened(monkeypatch, paused=paused, offline=offline)
    assert "2/9 pages, harvest rate 50.0 %, 1 relevant domain, frontier 5 in" in caplog.text
    assert ", frontier 5 in 1 leaf (exploration), " in caplog.text
    assert caplog.text.rstrip().endswith(said)


def test_line_says_when_sites_open(caplog, monkeypatch):
    caplog.set_level("INFO")
    opened(monkeypatch, opens_at=1_780_000_000.0)
    assert caplog.text.rstrip().endswith(", all sites are closed until 20:26 UTC")


def test_last_line_counts_from_this_start(caplog, monkeypatch):
    caplog.set_level("INFO")
    opened(monkeypatch, paused=True).spider_closed(None)
    *_, line, hurry = caplog.messages
    assert line.endswith("pages/s since this start")
    assert hurry.startswith("Request slots were left idle for 2 s in all since this start")


@pytest.mark.parametrize(
    ("given", "times"),
    [
        ({}, 1),
        ({"seed": "http://127.0.0.1:8000/"}, 0),
        ({"USER_AGENT": "mine (+https://mine.test/)"}, 0),
        ({"TRES_WEB": "synthetic"}, 0),
    ],
)
def test_missing_contact_is_named_once(caplog, monkeypatch, given, times):
    opened(monkeypatch, **({"USER_AGENT": USER_AGENT} | given))
    assert caplog.text.count("USER_AGENT has no contact: add") == times


def test_what_looks_wrong_is_said_once(caplog, monkeypatch):
    progress = opened(monkeypatch)
    session = progress._crawler.get_extension(CrawlSession)
    crawl, ledger = session.crawl, SimpleNamespace(relevant_domains=1)
    crawl.counts, crawl.store = Counter(), SimpleNamespace(ledger=ledger)
    for pages, relevant in ((19, 0), (20, 1), (21, 1), (60, 12), (61, 13)):
        crawl.pages, crawl.relevant = pages, relevant
        for listener in session.listeners:
            listener(None)
    assert [line for line in caplog.messages if "contact" not in line] == [
        "Hardly a page fits: 1 of 20 pages is relevant; the seed may be off topic: give another "
        "one",
        "All 12 relevant pages are of one site, which may not be the topic: give seeds of other "
        "sites, or lower -a max_per_domain=",
    ]
