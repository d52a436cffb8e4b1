from prometheus_client import CollectorRegistry, generate_latest

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import Status
from tres_scrapy.cluster.view import SHARD_METRICS
from tres_scrapy.export.metrics import CrawlCollector


def overview(ages, **second):
    figures = {"relevant_pages": 5, "failures/http_404": 2, "phase": "greedy"}
    first = Status(0, 10, 3, value=0.5, ready=True, figures=figures)
    figures = {"failures/robots": 1, "outbox": 7, "snapshot_age": 9}
    return Overview(
        {0: first, 1: Status(1, 30, 4, value=0.9, **second, figures=figures)}, ages, 100, "", ""
    )


def test_metrics_of_shards_have_labels():
    collector = CrawlCollector({"topic": "food", "policy": "tres"}, None, SHARD_METRICS)
    collector.state = overview({0: 0.5, 1: 60.0}).state
    registry = CollectorRegistry()
    registry.register(collector)
    lines = generate_latest(registry).decode().splitlines()
    assert {
        "tres_pages_total 40.0",
        "tres_fetches_in_progress 7.0",
        'tres_failures_total{kind="http_404"} 2.0',
        'tres_failures_total{kind="robots"} 1.0',
        'tres_shard_pages_total{shard="0"} 10.0',
        'tres_shard_pages_total{shard="1"} 30.0',
        'tres_shard_outbox_parcels{shard="1"} 7.0',
        'tres_shard_last_q{shard="1"} 0.9',
        'tres_shard_report_age_seconds{shard="1"} 60.0',
        'tres_shard_snapshot_age_seconds{shard="1"} 9.0',
        'tres_crawl_info{policy="tres",topic="food"} 1.0',
    } <= set(lines)
    assert not any(line.startswith("tres_reactor_lag") for line in lines)


def test_crawl_that_starts_has_metrics():
    registry = CollectorRegistry()
    registry.register(CrawlCollector({"topic": "food", "policy": "tres"}, None, SHARD_METRICS))
    assert b"tres_crawl_info" in generate_latest(registry)


def test_state_of_a_shard_is_named():
    cases = (
        ({1: 0.1}, {"ready": True}, "running"),
        ({1: 0.1}, {"ready": True, "idle": True}, "idle"),
        ({1: 0.1}, {}, "starting"),
        ({1: 60.0}, {"ready": True}, "does not report"),
        ({}, {"ready": True}, "does not report"),
    )
    for ages, status, word in cases:
        assert overview(ages, **status).state.shards[1]["state"] == word
