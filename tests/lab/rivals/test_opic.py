import numpy as np
from judged import judged
from rivals.inputs import KeywordInputs
from rivals.opic import OpicPolicy

from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import SampleStore


def start():
    """Lease the seed of a crawl; return crawl and row."""
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, OpicPolicy(store, KeywordInputs()))
    crawl.add_seeds(Outlinks(["http://seed.test/"], [""], np.zeros((1, 3), dtype="f4")))
    return crawl, crawl.next().row


def book(crawl, row, names):
    """Book a page that links to these hosts."""
    urls = [f"http://{name}.test/" for name in names]
    links = Outlinks(urls, [""] * len(urls), np.zeros((len(urls), 3), dtype="f4"))
    return crawl.book(row, judged(0.0), links)


def take(crawl):
    """Lease the next row; return the row, its host and its cash."""
    decision = crawl.next()
    host = crawl.store.url(decision.row).split("/")[2].removesuffix(".test")
    return decision.row, host, decision.q_value


def test_cash_is_shared_and_adds_up():
    crawl, seed = start()
    book(crawl, seed, "ab")
    row, *first = take(crawl)
    book(crawl, row, "bcde")
    assert first == ["a", 1 / 2]
    assert [take(crawl)[1:] for _ in range(4)] == [
        ("b", 1 / 2 + 1 / 8),
        ("c", 1 / 8),
        ("d", 1 / 8),
        ("e", 1 / 8),
    ]


def test_fetched_urls_get_no_cash():
    crawl, seed = start()
    book(crawl, seed, "ab")
    row, _, _ = take(crawl)
    book(crawl, row, ["seed", "a", "c"])
    assert [take(crawl)[1:] for _ in range(2)] == [("b", 1 / 2), ("c", 1 / 2)]


def test_a_failed_page_shares_nothing():
    crawl, seed = start()
    book(crawl, seed, "ab")
    row, _, _ = take(crawl)
    crawl.book(row, Failure("http_404"))
    assert take(crawl)[1:] == ("b", 1 / 2)
    assert crawl.next() is None


def test_a_page_that_was_set_back_keeps_its_cash():
    crawl, seed = start()
    book(crawl, seed, "ab")
    row, _, _ = take(crawl)
    crawl.set_back(row)
    again, _, _ = take(crawl)
    book(crawl, again, "c")
    assert again == row
    assert sorted(take(crawl)[1:] for _ in range(2)) == [("b", 1 / 2), ("c", 1 / 2)]


def test_a_link_met_on_a_busy_host_comes_back_with_all_its_cash():
    crawl, seed = start()
    rows = book(crawl, seed, "ab").outlinks
    busy = crawl.store["host"][rows[:1]].tolist()
    row = crawl.next(Availability(busy)).row
    assert row == rows[1]
    book(crawl, row, "a")
    assert take(crawl)[1:] == ("a", 1.0)
