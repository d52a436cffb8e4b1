"""The extension that exports metrics of the crawl to Prometheus, named as Prometheus recommends."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from http.server import ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Thread
from time import monotonic
from typing import Any, Final, NamedTuple, Self

from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    PlatformCollector,
    ProcessCollector,
    write_to_textfile,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import MetricsHandler
from prometheus_client.registry import Collector
from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import AsyncioLoopingCall, create_looping_call
from twisted.internet.task import LoopingCall

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.output import OutputOptions
from tres_scrapy.config.typed import named
from tres_scrapy.export.archive import Archive
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.url.message import plainly

INTERVAL: Final = 1.0  # seconds between snapshots
BETWEEN_FILES: Final = 15  # snapshots between two writes of the file
MOST_CONNECTIONS: Final = 16  # at once, each with a thread; others are closed
PATIENCE: Final = 5.0  # seconds for a request
Snapshot = Mapping[str, float]  # figures by name; failures by kind as failures/KIND
FAILURES: Final = "failures/"
COUNTER, GAUGE = "counter", "gauge"
FAMILIES: Final = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily}
Stop = Callable[[], None]

logger = logging.getLogger(__name__)


class Metric(NamedTuple):
    """A figure of the crawl and its name in Prometheus; counters end in `_total`."""

    name: str
    kind: str
    figure: str
    meaning: str


METRICS: Final = (
    Metric("tres_pages_total", COUNTER, "pages", "Pages fetched and judged."),
    Metric("tres_relevant_pages_total", COUNTER, "relevant_pages", "Pages judged relevant."),
    Metric("tres_harvest_ratio", GAUGE, "harvest_rate", "Relevant pages / all pages, 0 to 1."),
    Metric("tres_relevant_domains", GAUGE, "relevant_domains", "Domains with a relevant page."),
    Metric("tres_domains_given_up", GAUGE, "domains_given_up", "Domains that failed too often."),
    Metric("tres_hosts_given_up", GAUGE, "hosts_given_up", "Hosts that failed after their rests."),
    Metric("tres_frontier_links", GAUGE, "frontier_size", "Links waiting in the frontier."),
    Metric("tres_links_left_out_total", COUNTER, "links_left_out", "Links dropped: frontier full."),
    Metric("tres_tree_leaves", GAUGE, "leaves", "Leaves of the tree."),
    Metric("tres_choices_total", COUNTER, "choices", "Links chosen to be fetched."),
    Metric("tres_fetches_in_progress", GAUGE, "leased", "Chosen links not yet booked."),
    Metric("tres_gradient_steps_total", COUNTER, "updates", "Gradient steps taken."),
    Metric("tres_gradient_steps_skipped_total", COUNTER, "skipped_updates", "Steps not finite."),
    Metric("tres_q_loss", GAUGE, "q_loss", "Loss of the last gradient step."),
    Metric("tres_q_evaluations_total", COUNTER, "q_evaluations", "Links whose Q was computed."),
    Metric("tres_judge_queue_pages", GAUGE, "judge_waiting", "Pages waiting to be judged."),
    Metric("tres_archive_queue_bytes", GAUGE, "archive_waiting", "Bodies waiting to be archived."),
    Metric("tres_archive_bytes", GAUGE, "archive_size", "Size of the WARC file."),
)
FAILED: Final = Metric("tres_failures_total", COUNTER, FAILURES, "Failed fetches, by kind.")
LAG: Final = Metric("tres_reactor_lag_seconds", GAUGE, "", "Delay of the event loop.")
INFO: Final = Metric("tres_crawl_info", GAUGE, "", "Always 1; labels: topic and policy.")
ALL: Final = (*METRICS, FAILED, LAG, INFO)


class CrawlCollector(Collector):
    """Reports the latest snapshot; may be called in any thread."""

    def __init__(self, labels: Mapping[str, str], lag: Callable[[], float]) -> None:
        self.snapshot: Snapshot = {}
        self._labels = dict(labels)
        self._lag = lag

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield one family for each metric whose figure this crawl has."""
        snapshot = self.snapshot  # the crawl replaces it and never changes it
        for metric in METRICS:
            if metric.figure in snapshot:
                yield _family(metric, snapshot[metric.figure])
        yield _failures(snapshot)
        yield _family(LAG, self._lag())
        info = GaugeMetricFamily(INFO.name, INFO.meaning, labels=list(self._labels))
        info.add_metric(list(self._labels.values()), 1)
        yield info


def _family(metric: Metric, value: float) -> CounterMetricFamily | GaugeMetricFamily:
    family: CounterMetricFamily | GaugeMetricFamily
    family = FAMILIES[metric.kind](metric.name, metric.meaning, value=value)
    return family


def _failures(snapshot: Snapshot) -> CounterMetricFamily:
    family = CounterMetricFamily(FAILED.name, FAILED.meaning, labels=["kind"])
    for name, value in snapshot.items():
        if name.startswith(FAILURES):
            family.add_metric([name.removeprefix(FAILURES)], value)
    return family


class MetricsServer(ThreadingHTTPServer):
    """Serves a registry over HTTP with few threads, however many clients connect."""

    request_queue_size = 4 * MOST_CONNECTIONS

    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        self.address_family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        handler = MetricsHandler.factory(registry)
        handler.timeout = PATIENCE  # type: ignore[attr-defined]
        super().__init__((host, port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, or close the connection if there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer; called in a thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()


class Metrics:
    """Takes a snapshot of the figures every second, which a thread serves over HTTP.

    So requests do not delay the crawl, and a blocked crawl still answers and shows its lag.
    Raise ConfigError if the port is taken or the file cannot be written.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._file = config.output.metrics_file
        self._before, self._lag, self._ticks = monotonic(), 0.0, 0
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        labels = {"topic": str(config.topic), "policy": config.policy}
        self._collector = CrawlCollector(labels, self.lag)
        self._registry = registry_of(self._collector)
        self.port, self._stop = serve(config.output, self._registry)
        if self._file is not None:
            self._write(self._file)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.output.metrics_port is None and config.output.metrics_file is None:
            raise NotConfigured
        extension = cls(crawler, config)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.engine_stopped, signal=signals.engine_stopped)
        return extension

    def lag(self) -> float:
        """Return the seconds by which the last snapshot was late, or the next one is now."""
        overdue = monotonic() - self._before - INTERVAL if self._loop is not None else 0.0
        return max(0.0, self._lag, overdue)

    def spider_opened(self) -> None:
        self._before = monotonic() - INTERVAL
        self._loop = loop = create_looping_call(self._tick)
        loop.start(INTERVAL)

    def engine_stopped(self) -> None:
        if self._loop is not None:
            self._loop.stop()
            self._loop = None
        self._tick()
        if self._file is not None:
            self._write(self._file)
        self._stop()

    def _tick(self) -> None:
        now = monotonic()
        self._lag, self._before = now - self._before - INTERVAL, now
        self._collector.snapshot = self._figures()
        self._ticks += 1
        if self._file is not None and self._ticks % BETWEEN_FILES == 0:
            self._write(self._file)

    def _figures(self) -> Snapshot:
        session = self._crawler.get_extension(CrawlSession)
        if session is None:
            return {}
        crawl, archive = session.crawl, self._crawler.get_extension(Archive)
        figures = {k: v for k, v in crawl.figures().items() if not isinstance(v, str)}
        figures["leased"] = crawl.leased
        figures["choices"] = crawl.pages + crawl.failures.total() + crawl.leased
        figures["judge_waiting"] = session.judge.waiting
        if archive is not None:
            figures["archive_waiting"] = archive.writer.waiting
            figures["archive_size"] = archive.writer.size
        return figures

    def _write(self, path: Path) -> None:
        write_metrics(path, self._registry, must=not self._ticks)


def registry_of(collector: Collector) -> CollectorRegistry:
    """Return a registry of the metrics of a crawl and of this process."""
    registry = CollectorRegistry()
    registry.register(collector)
    for kind in (ProcessCollector, PlatformCollector, GCCollector):
        kind(registry=registry)
    return registry


def serve(options: OutputOptions, registry: CollectorRegistry) -> tuple[int | None, Stop]:
    """Serve a registry if a port is set; return the port and a function that stops it.

    Raise ConfigError if the port is taken.
    """
    host, port = options.metrics_host, options.metrics_port
    if port is None:
        return None, lambda: None
    try:
        server = MetricsServer(host, port, registry)
    except OSError as error:
        raise ConfigError(
            f"{named('TRES_METRICS_PORT')}: cannot listen on {host}:{port}: {plainly(error)}"
        ) from None
    thread = Thread(target=server.serve_forever, name="tres-metrics", daemon=True)
    thread.start()
    logger.info("Metrics are served at http://%s:%d/metrics", host, server.server_port)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return server.server_port, stop


def write_metrics(path: Path, registry: CollectorRegistry, *, must: bool = False) -> None:
    """Write the metrics to a file; if that fails, raise ConfigError if it `must` not, or warn."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_to_textfile(str(path), registry)
    except OSError as error:
        said = f"{named('TRES_METRICS_FILE')} cannot be written: {plainly(error)}"
        if must:
            raise ConfigError(said) from None
        logger.warning("%s", said)
