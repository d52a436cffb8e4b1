"""A small crawl in memory, and the record of it."""

import numpy as np
from judged import judged, told
from plain_policy import PlainPolicy
from soup import FOOD, OTHER

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.run_file import open_to_write
from tres_scrapy.run.writer import Writer

VEGETABLES = ("leek", "carrot", "radish", "turnip", "celery", "parsnip")
META = {"topic": "food", "policy": "tres"}


def crawl_of(policy="tres", pages=150, *, link_model=True):
    """Return a crawl with a seed; `plain` is the policy of the tests."""
    crawl = empty_crawl(policy, pages, link_model=link_model)
    crawl.add_seeds(Outlinks(["http://0.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    return crawl


def empty_crawl(policy="tres", pages=150, *, link_model=True):
    """Return the same crawl without its seed."""
    store = SampleStore(DomainLedger())
    learning = LearningOptions(exploration_steps=20)
    setup = PolicyInputs(0, learning=learning, links=LinkOptions(enabled=link_model))
    is_plain = policy == "plain"
    chosen = PlainPolicy(store) if is_plain else make_policy(policy, store, setup)
    return Crawl(store, chosen, pages)


def steps(crawl, seed=0):
    """Run a crawl to its end, one booking at a time: pages and a few failures."""
    random = np.random.default_rng(seed)
    while (decision := crawl.next()) is not None:
        row = decision.row
        if row % 17 == 5:
            yield crawl.book(row, Failure("http_404"))
            continue
        if row % 17 == 6:
            crawl.redirect(row, f"http://moved.test/{row}")
        urls = [f"http://{random.integers(40)}.test/{row}/{i}" for i in range(6)]
        actions = random.random((6, 3)).astype(np.float32)
        reward = float(crawl.store.features(np.array([row]))[0, 5] > 0.6)
        yield crawl.book(
            row, judged(reward), Outlinks(urls, [f"to {url}" for url in urls], actions)
        )


def record(path, crawl, every=10, *, is_durable=False):
    """Record a crawl to its end, as in JOBDIR if `is_durable`; return its bookings."""
    writer = Writer(Journal(open_to_write(path), is_durable=is_durable), crawl, 100.0)
    writer.begin(META, {"A": "1"}, 100.0)
    bookings = []
    for number, booking in enumerate(steps(crawl)):
        bookings.append(booking)
        page = {"title": f"title {number}", "text": f"text {number}", "probability": 0.75}
        writer.note(told(booking, **page), 100.0 + number)
        if number % every == 0:
            writer.flush(100.0 + number)
    writer.close(500.0, "page_limit")
    return bookings


def record_poor(path):
    """Record a crawl with a trained pack that calls half of both kinds of pages relevant."""
    crawl = crawl_of(pages=40)
    meta = META | {"started": "20260101T000000.000000"}
    meta |= {"output": str(path.with_suffix(".jsonl"))}
    writer = Writer.open(path, crawl, meta, {"TRES_TEXTS": "True"}, 100.0)
    for n, booking in enumerate(steps(crawl)):
        text = (FOOD if n % 2 else OTHER).format(VEGETABLES[n % 6] + f" number {n}" * 9)
        writer.note(told(booking, "", text, 0.3 + 0.4 * (n % 4 > 1)), 100.0)
    writer.close(200.0, "page_limit")
