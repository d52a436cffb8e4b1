import json
import logging
import re
import socket
import threading
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from conftest import PROJECT
from scraped import asked, samples_of
from scrapy.exceptions import NotConfigured
from scrapy.settings import Settings

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export import metrics as module
from tres_scrapy.export.metrics import (
    FAILED,
    INFO,
    LAG,
    METRICS,
    MOST_CONNECTIONS,
    CrawlCollector,
    Metrics,
)
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.live.state import CrawlState

ALL = (*METRICS, FAILED, LAG, INFO)
FIGURES = {"pages": 7, "relevant_pages": 3, "phase": "exploration", "failures/http_404": 2}


class Crawl:
    """A crawl with some pages."""

    leased, limit = 1, None

    def figures(self):
        return dict(FIGURES)


class Crawler:
    """The parts of a crawler that metrics use."""

    def __init__(self, **settings):
        self.settings = Settings({"TRES_TOPIC": "food", **settings})
        self.signals = SimpleNamespace(connect=lambda *_, **__: None)
        health = SimpleNamespace(in_doubt=False)
        judge = SimpleNamespace(waiting=4)
        self.learner = SimpleNamespace(
            crawl=Crawl(), judge=judge, health=health, sites=SimpleNamespace(opens_at=None)
        )

    def get_extension(self, cls):
        return self.learner if cls is CrawlSession else None


@pytest.fixture
def started():
    """Start metrics on a free port and take one snapshot."""
    running = []

    def start(**settings):
        metrics = Metrics.from_crawler(Crawler(**settings))
        running.append(metrics)
        metrics._tick()
        return metrics

    yield start
    for metrics in running:
        metrics.engine_stopped()


def test_idle_connections_take_few_threads(started, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 60)
    port = started(TRES_METRICS_PORT=0).export.port
    before = threading.active_count()
    with ExitStack() as idle:
        for _ in range(3 * MOST_CONNECTIONS):
            idle.enter_context(socket.create_connection(("127.0.0.1", port)))
        last = idle.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        assert last.recv(1) == b""  # closed at once
        assert threading.active_count() - before == MOST_CONNECTIONS


def test_figures_are_told_over_http(started):
    samples = asked(started(TRES_METRICS_PORT=0).export.port)
    assert samples["tres_pages_total",] == 7
    assert samples["tres_failures_total", "http_404"] == 2
    assert samples["tres_choices_total",] == 10
    assert samples["tres_fetches_in_progress",] == 1
    assert samples["tres_judge_queue_pages",] == 4
    assert samples["tres_crawl_info", "tres", "food"] == 1
    assert samples["process_resident_memory_bytes",] > 0
    assert ("tres_tree_leaves",) not in samples, "this crawl has no tree"


def test_metric_names_follow_prometheus():
    assert len({metric.name for metric in ALL}) == len(ALL)
    for metric in ALL:
        assert metric.meaning.endswith(".")


def test_every_figure_is_exported():
    collector = CrawlCollector({}, lambda: 0.0)
    collector.state = CrawlState({0: {metric.figure: 1.0 for metric in METRICS}})
    told = {sample.name for family in collector.collect() for sample in family.samples}
    assert {metric.name for metric in METRICS} <= told


def test_grafana_board_shows_metrics_that_exist(started):
    board = json.loads((PROJECT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    named = {name for query in queries for name in re.findall(r"[a-z_]+(?={)", query)}
    told = {name for name, *_ in asked(started(TRES_METRICS_PORT=0).export.port)}
    assert {"tres_failures_total", "process_resident_memory_bytes"} <= named
    assert named <= told | {metric.name for metric in ALL}


def test_stalled_reactor_is_seen(started, monkeypatch):
    metrics = started(TRES_METRICS_PORT=0)
    now = metrics._before
    monkeypatch.setattr(module, "monotonic", lambda: now + 8)
    monkeypatch.setattr(metrics, "_loop", SimpleNamespace(stop=lambda: None))
    assert asked(metrics.export.port)["tres_reactor_lag_seconds",] == 7
    metrics._tick()
    assert metrics.lag() == 7
    now += 8
    monkeypatch.setattr(module, "monotonic", lambda: now + 1)
    metrics._tick()
    assert metrics.lag() == 0


def test_file_has_same_metrics(started, tmp_path):
    path = tmp_path / "new" / "tres.prom"
    metrics = started(TRES_METRICS_FILE=str(path))
    assert samples_of(path.read_text())["tres_reactor_lag_seconds",] == 0
    later = {**FIGURES, "pages": 9}
    metrics._crawler.learner.crawl.figures = lambda: later
    metrics.engine_stopped()
    assert samples_of(path.read_text())["tres_pages_total",] == 9
    assert list(path.parent.iterdir()) == [path]


def test_port_is_free_again_afterwards(started):
    first = started(TRES_METRICS_PORT=0)
    port = first.export.port
    with pytest.raises(ConfigError, match=f"TRES_METRICS_PORT .*: cannot listen on .*{port}"):
        Metrics.from_crawler(Crawler(TRES_METRICS_PORT=port))
    first.engine_stopped()
    again = Metrics.from_crawler(Crawler(TRES_METRICS_PORT=port))
    again.engine_stopped()


def test_unwritable_file_is_reported(started, tmp_path, caplog):
    (tmp_path / "a").touch()
    with pytest.raises(ConfigError, match=r"TRES_METRICS_FILE .*cannot be written"):
        Metrics.from_crawler(Crawler(TRES_METRICS_FILE=str(tmp_path / "a" / "b.prom")))
    metrics = started(TRES_METRICS_FILE=str(tmp_path / "c" / "d.prom"))
    (tmp_path / "c" / "d.prom").unlink()
    (tmp_path / "c").rmdir()
    (tmp_path / "c").touch()
    with caplog.at_level(logging.WARNING):
        metrics.engine_stopped()
    assert "TRES_METRICS_FILE (-a metrics_file=) cannot be written: " in caplog.text


def test_without_a_setting_there_are_none():
    with pytest.raises(NotConfigured):
        Metrics.from_crawler(Crawler())
