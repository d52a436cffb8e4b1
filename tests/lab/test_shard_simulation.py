import gzip
from collections import Counter
from dataclasses import astuple

import pytest
from archived import answered
from comparing.simulation import World
from shard_simulation import Agenda, ShardSimulation, Timing

from tres_scrapy import settings
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.export.warc import exchange_records
from tres_scrapy.url.canonical import domain_of

PAGES = 60


def config_of(pages=PAGES, **options):
    web = options.pop("web", WebOptions("synthetic", 3))
    return Config("food", pages=pages, random_seed=3, web=web, **options)


@pytest.fixture(scope="module")
def world():
    return World(config_of(), user_agent=settings.USER_AGENT)


def test_agenda_calls_in_the_order_of_time():
    agenda, called = Agenda(), []
    for seconds, name in ((2.0, "c"), (1.0, "a"), (1.0, "b")):
        agenda.after(seconds, lambda name=name: called.append((agenda.now, name)))
    agenda.every(0.75, lambda: called.append((agenda.now, "again")), first=0.5)
    for _ in range(6):
        agenda.step()
    assert called == [
        *((0.5, "again"), (1.0, "a"), (1.0, "b"), (1.25, "again")),
        *((2.0, "c"), (2.0, "again")),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 3])
def test_crawl_in_shards_has_exactly_t_pages(world, shards):
    told = []
    simulation = ShardSimulation(world, config_of(max_per_domain=Cap(5, 5)), shards)
    result = simulation.run(told.append)
    assert result.pages == sum(told) == simulation.pages == PAGES
    assert 0 < result.domains <= result.relevant < PAGES
    assert result.course[-1] == result.relevant
    assert len(result.course) == 10
    visits = Counter()
    for shard in simulation.shards:
        ledger = shard.crawl.store.ledger
        own = {name: ledger.pages_of(name) for name in ledger.names if ledger.pages_of(name)}
        assert not visits.keys() & own.keys(), "a domain belongs to one shard"
        visits.update(own)
    assert max(visits.values()) <= 5
    assert (result.traffic.batches > 0) == (result.traffic.weight_bytes > 0) == (shards > 1)


@pytest.mark.long
@pytest.mark.slow
def test_same_seed_gives_the_same_crawl(world):
    first, second = (ShardSimulation(world, config_of(), 3).run() for _ in range(2))
    assert astuple(first) == astuple(second)


@pytest.fixture
def small_web(tmp_path):
    """Return a web of 90 pages of 12 domains that link to each other."""
    path = tmp_path / "web.warc.gz"
    with path.open("wb") as file:
        for number in range(90):
            links = [link_to(each) for each in (number * 2 + 1, number * 2 + 2) if each < 90]
            body = f"<p>page {number}" + "".join(f'<a href="{link}">{link}</a> ' for link in links)
            exchange = answered(url_of(number), body.encode())
            file.writelines(gzip.compress(part) for part in exchange_records(exchange))
            if number % 9 == 5:
                headers = [("Location", url_of(number)), ("Content-Type", "text/html")]
                moved = answered(link_to(number), b"", 301, headers)
                file.writelines(gzip.compress(part) for part in exchange_records(moved))
    return WebOptions("recorded", data=path)


def url_of(number):
    return f"http://d{number * 5 % 12}.test/{number}"


def link_to(number):
    """Return the link to a page: every ninth goes to another domain, which redirects."""
    return f"{url_of(number + 7)}-moved" if number % 9 == 5 else url_of(number)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_fetch_all_of_a_small_web_and_end(small_web, shards):
    config = config_of(1000, web=small_web, seed=(url_of(0),))
    small = World(config, user_agent=settings.USER_AGENT)
    simulation = ShardSimulation(small, config, shards, Timing(delay=0.3))
    assert simulation.run().pages == 90
    assert {url_of(number) for number in range(90)} <= simulation.count.seen
    for shard in simulation.shards:
        urls = [shard.crawl.store.url(row) for row in range(len(shard.crawl.store))]
        fetched = [url for url in urls if shard.crawl.store.closure.is_closed(url)]
        assert shards == 1 or all(map(shard.crawl.router.owns, fetched))
        assert {*map(domain_of, fetched)} <= {f"d{number}.test" for number in range(12)}
