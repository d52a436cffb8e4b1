import gzip
import json
import os
import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from archived import answered
from comparing.simulation import Simulation, World
from rivals import RIVALS, ache
from rivals.inputs import with_graph

from tres_scrapy import settings
from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.crawl.assembly import require_pack
from tres_scrapy.crawl.registry import POLICIES, kind_of
from tres_scrapy.export.warc import exchange_records

pytestmark = pytest.mark.slow

LOOKAHEAD = "rivals:LOOKAHEAD"
PAGES = 40
ORDERED = 25  # pages of the crawls of each kind of policy
ACHE_LEARNS = 10  # so that the crawl is long enough to use what it has learned
NO_SLOW_HOSTS = """
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
SyntheticWeb._delay = lambda self, site: 0.0
"""
CRAWL_EACH = (
    f"""
from rivals import ache
ache.LEARNING_LIMIT = {ACHE_LEARNS}
"""
    + """
import json
import sys
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.project import get_project_settings
from scrapy.utils.reactor import install_reactor
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from twisted.internet.task import react

@deferred_f_from_coro_f
async def main(_):
    pages, directory, web, *policies = sys.argv[1:]
    for policy in policies:
        settings = get_project_settings()
        settings.set("CONCURRENT_REQUESTS", 1)
        settings.setdict(json.loads(web), "cmdline")
        settings.set("TRES_WEB_LOG", f"{directory}/{policy}.jsonl")
        runner = AsyncCrawlerRunner(settings)
        crawler = runner.create_crawler("tres")
        await runner.crawl(
            crawler, topic="food", pages=pages, policy=policy, random_seed="3",
            max_per_domain="10", output=f"{directory}/{policy}-items.jsonl",
        )
        count, relevant = (crawler.stats.get_value(f"tres/web/{n}") for n in ("pages", "relevant"))
        print(f"{policy} {count} pages, {relevant} relevant")

react(main)
"""
)


@pytest.fixture(scope="module")
def worlds():
    """Return the worlds of food's synthetic web 3, by the pack that judges in them."""
    return {}


def config_of(policy, **options):
    options = {"topic": "food", "pages": PAGES} | options
    return Config(policy=policy, random_seed=3, web=WebOptions("synthetic", 3), **options)


def simulation_of(worlds, policy, **options):
    config = config_of(policy, **options)
    pack = require_pack(config)
    if pack not in worlds:
        worlds[pack] = World(config, user_agent=settings.USER_AGENT)
    simulation = Simulation(worlds[pack], config)
    simulation.count.log = StringIO()
    return simulation


def fetched(log):
    """Return the URLs of a web's log in order, without robots.txt and retries."""
    rows = [json.loads(line) for line in log.splitlines()]
    return [row["url"] for row in rows if row["kind"] != "robots" and not row["duplicate"]]


@pytest.mark.long
def test_order_equals_sequential_crawl(scrapy, worlds, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(NO_SLOW_HOSTS, encoding="utf-8")
    monkeypatch.setattr(ache, "LEARNING_LIMIT", ACHE_LEARNS)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    web = json.dumps({"TRES_WEB": "synthetic", "TRES_WEB_SEED": 3})
    policies = {  # one of each kind
        replace(kind_of(name), make=None): name
        for name in reversed([*POLICIES, *RIVALS])
        if kind_of(name).prepare is not with_graph
    }.values()
    crawls = scrapy(ORDERED, tmp_path, web, *policies, program=("-c", CRAWL_EACH), timeout=600)
    assert crawls.returncode == 0, crawls.stderr[-2000:]
    for policy in policies:
        simulation = simulation_of(worlds, policy, pages=ORDERED, max_per_domain=Cap(10, 10))
        result = simulation.run()
        log = (tmp_path / f"{policy}.jsonl").read_text()
        assert fetched(simulation.count.log.getvalue()) == fetched(log), policy
        assert result.pages == ORDERED
        count = f"{policy} {result.pages} pages, {result.relevant} relevant"
        assert count in crawls.stdout.splitlines()


@pytest.mark.long
def test_lookahead_order_equals_sequential_crawl(scrapy, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    random, path = np.random.default_rng(2), tmp_path / "corpus.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for i, links in enumerate(random.integers(240, size=(200, 3)).tolist()):
            topic = f"Food_and_drink.{i % 5}" if i % 7 == 0 else f"Topic.{i % 9}"
            row = {"id": f"p{i}", "title": f"P{i}", "categories": [topic], "text": "x"}
            file.write(json.dumps(row | {"links": [f"p{link}" for link in links]}) + "\n")
    web = json.dumps({"TRES_WEB": "corpus", "TRES_WEB_DATA": str(path)})
    crawls = scrapy(PAGES, tmp_path, web, LOOKAHEAD, program=("-c", CRAWL_EACH))
    assert crawls.returncode == 0, crawls.stderr[-2000:]
    config = replace(
        config_of(LOOKAHEAD, max_per_domain=Cap(10, 10)), web=WebOptions("corpus", data=path)
    )
    simulation = Simulation(World(config, user_agent=settings.USER_AGENT), config)
    assert 10 < simulation.run().relevant < PAGES
    urls = fetched((tmp_path / f"{LOOKAHEAD}.jsonl").read_text())
    assert simulation.order == [url for url in urls if not url.endswith("/robots.txt")]


@pytest.mark.long
def test_order_ignores_what_others_read(worlds):
    cold = simulation_of({}, "tres", pages=80)
    cold.run()
    for policy in ("random", "best_first"):
        simulation_of(worlds, policy, pages=40).run()
    warm = simulation_of(worlds, "tres", pages=80)
    warm.run()
    assert warm.order == cold.order


def test_each_relevant_page_is_found_once(worlds):
    result = simulation_of(worlds, "tres").run()
    assert len(result.found) == result.relevant
    assert result.found_after(result.fetches) == result.relevant


def test_progress_adds_up_to_the_pages(worlds):
    told = []
    result = simulation_of(worlds, "random").run(told.append)
    assert sum(told) == result.pages == PAGES


def test_dead_links_do_not_end_crawl(tmp_path):
    """Three of four links are dead; twenty 404s in a row would once give the domain up."""
    path = tmp_path / "web.warc.gz"
    with path.open("wb") as file:
        for i in range(60):
            live = [10 * i + k for k in range(1, 11) if 10 * i + k < 60]
            links = [f"/dead-{i}-{k}" for k in range(30)] + [f"/{k}" for k in live]
            html = "".join(f'<a href="{link}">{link}</a> ' for link in links)
            exchange = answered(f"http://a.test/{i}", f"<p>page {i} {html}".encode())
            file.writelines(gzip.compress(part) for part in exchange_records(exchange))
    web = WebOptions("recorded", data=path)
    config = Config("food", ("http://a.test/0",), 40, policy="breadth_first", web=web)
    simulation = Simulation(World(config, user_agent=settings.USER_AGENT), config)
    assert simulation.run().pages == 40
    assert simulation.crawl.failures["http_404"] >= 3 * 40
    assert simulation.crawl.figures()["domains_given_up"] == 0
