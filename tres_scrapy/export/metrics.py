"""The extension that exports metrics of the crawl to Prometheus, named as Prometheus recommends."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import ThreadingHTTPServer
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
from tres_scrapy.extensions.progress import state_of
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.live.state import FAILURES, CrawlState
from tres_scrapy.url.message import below, plainly

INTERVAL: Final = 1.0  # seconds between states
BETWEEN_FILES: Final = 15  # states between two writes of the file
MOST_CONNECTIONS: Final = 16  # at once, each with a thread; others are closed
PATIENCE: Final = 5.0  # seconds for a request
Family = CounterMetricFamily | GaugeMetricFamily

logger = logging.getLogger(__name__)


class Metric(NamedTuple):
    """A figure of the crawl and its name in Prometheus; counters end in `_total`."""

    name: str
    figure: str
    meaning: str


METRICS: Final = (
    Metric("tres_pages_total", "pages", "Pages fetched and judged."),
    Metric("tres_relevant_pages_total", "relevant_pages", "Pages judged relevant."),
    Metric("tres_harvest_ratio", "harvest_rate", "Relevant pages / all pages, 0 to 1."),
    Metric("tres_relevant_domains", "relevant_domains", "Domains with a relevant page."),
    Metric("tres_domains_given_up", "domains_given_up", "Domains that failed too often."),
    Metric("tres_hosts_given_up", "hosts_given_up", "Hosts that failed after their rests."),
    Metric("tres_frontier_links", "frontier_size", "Links waiting in the frontier."),
    Metric("tres_links_left_out_total", "links_left_out", "Links dropped: frontier full."),
    Metric("tres_tree_leaves", "leaves", "Leaves of the tree."),
    Metric("tres_choices_total", "choices", "Links chosen to be fetched."),
    Metric("tres_fetches_in_progress", "leased", "Chosen links not yet booked."),
    Metric("tres_gradient_steps_total", "updates", "Gradient steps taken."),
    Metric("tres_gradient_steps_skipped_total", "skipped_updates", "Steps not finite."),
    Metric("tres_q_loss", "q_loss", "Loss of the last gradient step."),
    Metric("tres_q_evaluations_total", "q_evaluations", "Links whose Q was computed."),
    Metric("tres_judge_queue_pages", "judge_waiting", "Pages waiting to be judged."),
    Metric("tres_archive_queue_bytes", "archive_waiting", "Bodies waiting to be archived."),
    Metric("tres_archive_bytes", "archive_size", "Size of the WARC file."),
)
FAILED: Final = Metric("tres_failures_total", FAILURES, "Failed fetches, by kind.")
LAG: Final = Metric("tres_reactor_lag_seconds", "", "Delay of the event loop.")
INFO: Final = Metric("tres_crawl_info", "", "Always 1; labels: topic and policy.")


class CrawlCollector(Collector):
    """Reports the latest state of a crawl; may be called in any thread.

    Each shard has `shard_metrics` of its own, with a label `shard`.
    """

    def __init__(
        self,
        labels: Mapping[str, str],
        lag: Callable[[], float] | None = None,
        shard_metrics: Sequence[Metric] = (),
    ) -> None:
        self.state = CrawlState({})
        self._labels = dict(labels)
        self._lag = lag
        self._shard_metrics = shard_metrics

    def collect(self) -> Iterator[Family]:
        """Yield one family for each metric whose figure this crawl has."""
        state = self.state  # the crawl replaces it and never changes it
        figures = state.figures()
        for metric in METRICS:
            if metric.figure in figures:
                yield _family(metric, [], {(): figures[metric.figure]})
        kinds = {(kind,): value for kind, value in below(figures, FAILURES).items()}
        yield _family(FAILED, ["kind"], kinds)
        if self._lag is not None:
            yield _family(LAG, [], {(): self._lag()})
        yield _family(INFO, list(self._labels), {tuple(self._labels.values()): 1})
        for metric in self._shard_metrics:
            values = {
                (str(shard),): float(found[metric.figure])
                for shard, found in sorted(state.shards.items())
                if metric.figure in found
            }
            yield _family(metric, ["shard"], values)


def _family(metric: Metric, labels: Sequence[str], values: Mapping[Any, float]) -> Family:
    """Return a metric with its values, which are by tuples of labels."""
    kind = CounterMetricFamily if metric.name.endswith("_total") else GaugeMetricFamily
    family: Family = kind(metric.name, metric.meaning, labels=labels)
    for given, value in values.items():
        family.add_metric(given, value)
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


class MetricsExport:
    """Serves the metrics of a crawl over HTTP, and writes them to a file, as the options say.

    Raise ConfigError if the port is taken or the file cannot be written.
    """

    def __init__(
        self,
        config: Config,
        lag: Callable[[], float] | None = None,
        shard_metrics: Sequence[Metric] = (),
    ) -> None:
        labels = {"topic": str(config.topic), "policy": config.policy}
        self._collector = CrawlCollector(labels, lag, shard_metrics)
        self._file = config.output.metrics_file
        self._registry = CollectorRegistry()
        self._registry.register(self._collector)
        for kind in (ProcessCollector, PlatformCollector, GCCollector):
            kind(registry=self._registry)
        self._states = 0
        self._server = _server(config.output, self._registry)
        self._write(must=True)

    @property
    def port(self) -> int | None:
        """The port, None if none is served."""
        return None if self._server is None else self._server.server_port

    def show(self, state: CrawlState) -> None:
        """Take a new state of the crawl."""
        self._collector.state = state
        self._states += 1
        if self._states % BETWEEN_FILES == 0:
            self._write()

    def close(self) -> None:
        """Write the file for the last time, and serve no more."""
        self._write()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def _write(self, *, must: bool = False) -> None:
        """Write the file, if there is one; if that fails, warn, or raise ConfigError (`must`)."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_to_textfile(str(self._file), self._registry)
        except OSError as error:
            said = f"{named('TRES_METRICS_FILE')} cannot be written: {plainly(error)}"
            if must:
                raise ConfigError(said) from None
            logger.warning("%s", said)


def _server(options: OutputOptions, registry: CollectorRegistry) -> MetricsServer | None:
    """Serve a registry in a thread if a port is set; raise ConfigError if it is taken."""
    host, port = options.metrics_host, options.metrics_port
    if port is None:
        return None
    try:
        server = MetricsServer(host, port, registry)
    except OSError as error:
        raise ConfigError(
            f"{named('TRES_METRICS_PORT')}: cannot listen on {host}:{port}: {plainly(error)}"
        ) from None
    Thread(target=server.serve_forever, name="tres-metrics", daemon=True).start()
    logger.info("Metrics are served at http://%s:%d/metrics", host, server.server_port)
    return server


class Metrics:
    """Exports the state of the crawl in this process every second.

    A thread serves it, so requests do not delay the crawl, and a blocked crawl still answers and
    shows its lag.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._before, self._lag = monotonic(), 0.0
        self._loop: AsyncioLoopingCall | LoopingCall | None = None
        self.export = MetricsExport(config, self.lag)

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
        """Return the seconds by which the last state was late, or the next one is now."""
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
        self.export.close()

    def _tick(self) -> None:
        now = monotonic()
        self._lag, self._before = now - self._before - INTERVAL, now
        session = CrawlSession.of(self._crawler)
        more = {"judge_waiting": session.judge.waiting}
        if (archive := self._crawler.get_extension(Archive)) is not None:
            writer = archive.writer
            more |= {"archive_waiting": writer.waiting, "archive_size": writer.size}
        self.export.show(state_of(session, **more))
