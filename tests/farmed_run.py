"""Crawls of a web of honest sites and a farm: endless sites that link to each other."""

import numpy as np
from judged import judged, told
from plain_policy import PlainPolicy

from tres_scrapy.config.limit import FrontierLimits, ScopeOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.admission import Outlinks, Scope
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.copies import NOTHING, Known
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.run_file import open_to_write
from tres_scrapy.run.writer import Writer

HONEST = 40
META = {"topic": "food", "policy": "plain"}
STALE = Known(64, 0, 64)
SEED = "http://honest0.test/"


def crawl_of(pages, cap=None, *, is_new=True, **scope):
    """Return a crawl with a seed, or an empty one that is to be recovered."""
    ledger = DomainLedger(cap, inlinks=True, limits=FrontierLimits())
    store = SampleStore(ledger, Scope.of(ScopeOptions(**scope)))
    crawl = Crawl(store, PlainPolicy(store), pages)
    if is_new:
        crawl.add_seeds(Outlinks([SEED], [""], np.zeros((1, 3), dtype=np.float32)))
    return crawl


def honest(url, random):
    """Return the links of a page: to many sites, each of which many link to."""
    return [f"http://honest{random.integers(HONEST)}.test/{random.integers(10**9)}" for _ in "123"]


def farmed(url, random):
    """Return the same, but one honest page links to a farm, which links to itself only."""
    if "farm" in url:
        numbers = random.integers(10**9, size=4).tolist()
        return [f"http://farm{n}.test/{page}" for n in numbers for page in ("", "more")]
    return ["http://farm.test/"] if url.startswith("http://honest3.") else honest(url, random)


def hidden_farm(url, random):
    """Return the same, but the site that links to the farm links to many others too."""
    return farmed(url, random) + ([] if "farm" in url else honest(url, random))


def one_site(url, random):
    """Return links to one site, of whose pages there is no end."""
    return honest(url, random)[:1] + [f"http://large.test/{random.integers(10**9)}"] * 3


def repeating(url):
    """Return what is known of a page: the farm says the same again and again."""
    return STALE if "farm" in url else NOTHING


def steps(crawl, links, known=lambda _: NOTHING):
    """Run a crawl to its end, one booking at a time; all pages are relevant."""
    random = np.random.default_rng(0)
    while (decision := crawl.next()) is not None:
        urls = list(dict.fromkeys(links(crawl.store.url(decision.row), random)))
        actions = np.zeros((len(urls), 3), dtype=np.float32)
        site = int(crawl.store["domain"][decision.row])
        crawl.store.ledger.note_known(site, known(crawl.store.url(decision.row)))
        yield crawl.book(decision.row, judged(), Outlinks(urls, [""] * len(urls), actions))


def record(path, crawl, links, *, is_durable=False, **says):
    """Record a crawl to its end, as in JOBDIR if `is_durable`."""
    writer = Writer(Journal(open_to_write(path), is_durable=is_durable), crawl, 100.0)
    writer.begin(META | {"output": str(path.with_suffix(".jsonl"))}, {}, 100.0)
    for number, booking in enumerate(steps(crawl, links, **says)):
        writer.note(told(booking, "a page"), 100.0 + number)
    writer.close(500.0, "page_limit")
