from prometheus_client import CollectorRegistry, generate_latest

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import Status
from tres_scrapy.cluster.view import ClusterCollector, summed


def overview():
    figures = {"pages": 10, "relevant_pages": 5, "frontier_size": 100, "failures/http_404": 2}
    first = Status(0, 10, 3, value=0.5, figures={**figures, "updates": 40, "phase": "greedy"})
    figures = {"pages": 30, "relevant_pages": 25, "frontier_size": 50, "failures/robots": 1}
    second = Status(
        1, 30, 4, value=0.9, figures={**figures, "updates": 38, "outbox": 7, "snapshot_age": 9}
    )
    return Overview({0: first, 1: second}, {0: 0.5, 1: 60.0}, 100, "", "")


def test_counts_are_summed():
    total = summed(overview())
    assert (total["pages"], total["relevant_pages"], total["frontier_size"]) == (40, 30, 150)
    assert total["harvest_rate"] == 0.75
    assert (total["leased"], total["choices"]) == (7, 40 + 3 + 7)


def test_steps_of_the_learner_count_once():
    assert summed(overview())["updates"] == 40


def test_metrics_of_shards_have_labels():
    collector = ClusterCollector({"topic": "food", "policy": "tres"})
    collector.overview = overview()
    registry = CollectorRegistry()
    registry.register(collector)
    lines = generate_latest(registry).decode().splitlines()
    assert {
        "tres_pages_total 40.0",
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
    registry.register(ClusterCollector({"topic": "food", "policy": "tres"}))
    assert b"tres_crawl_info" in generate_latest(registry)
