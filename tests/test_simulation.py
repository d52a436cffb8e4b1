import json
from io import StringIO

import pytest

from tres_scrapy import settings
from tres_scrapy.bench.simulation import Simulation, World
from tres_scrapy.config import Config
from tres_scrapy.frontier.ledger import Cap
from tres_scrapy.policies.registry import POLICIES

PAGES = 40


@pytest.fixture(scope="module")
def worlds():
    """The worlds of food's synthetic web 3, by the pack that judges in them."""
    return {}


def config_of(policy, **options):
    options = {"web": "synthetic", "web_seed": 3, "topic": "food", "pages": PAGES} | options
    return Config(policy=policy, random_seed=3, **options)


def simulation_of(worlds, policy, **options):
    config = config_of(policy, **options)
    if config.pack not in worlds:
        worlds[config.pack] = World(config, user_agent=settings.USER_AGENT)
    simulation = Simulation(worlds[config.pack], config)
    simulation.count.log = StringIO()
    return simulation


def fetched(log):
    """The URLs of a web's log in order, without robots.txt and without retries."""
    rows = [json.loads(line) for line in log.splitlines()]
    return [row["url"] for row in rows if row["kind"] != "robots" and not row["duplicate"]]


@pytest.mark.parametrize("policy", POLICIES)
def test_order_is_that_of_a_crawl_with_one_request_at_a_time(scrapy, worlds, policy, tmp_path):
    log = tmp_path / "log.jsonl"
    crawl = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", f"pages={PAGES}", "-a", f"policy={policy}"),
        *("-a", "random_seed=3", "-a", "web=synthetic", "-a", "web_seed=3"),
        *("-a", f"web_log={log}", "-a", f"output={tmp_path / 'items.jsonl'}"),
        *("-a", "max_per_domain=10", "-s", "CONCURRENT_REQUESTS=1"),
    )
    assert crawl.returncode == 0, crawl.stderr[-2000:]
    simulation = simulation_of(worlds, policy, max_per_domain=Cap(10, 10))
    result = simulation.run()
    assert fetched(simulation.count.log.getvalue()) == fetched(log.read_text())
    assert result.pages == PAGES
    assert f"{result.pages} pages, {result.relevant} relevant" in crawl.stderr


def test_order_does_not_depend_on_what_other_crawls_have_read_before(worlds):
    cold = simulation_of({}, "tres", pages=150)
    cold.run()
    for policy in ("random", "best_first"):
        simulation_of(worlds, policy, pages=60).run()
    warm = simulation_of(worlds, "tres", pages=150)
    warm.run()
    assert warm.order == cold.order


def test_series_ends_with_the_count_and_rises(worlds):
    result = simulation_of(worlds, "tres").run()
    series = result.series
    assert series.pages == list(range(1, PAGES + 1))
    assert series.relevant[-1] == result.relevant
    assert series.domains == sorted(series.domains)
    assert series.leaves[-1] >= 1
    assert all(each > 0 for each in series.decision_ms)


def test_progress_adds_up_to_the_pages(worlds):
    told = []
    result = simulation_of(worlds, "random").run(told.append)
    assert sum(told) == result.pages == PAGES
