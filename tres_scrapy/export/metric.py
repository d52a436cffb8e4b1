"""The metrics of a running crawl, with names and units as Prometheus recommends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

Snapshot = Mapping[str, float]  # figures by name; failures by kind as failures/KIND
FAILURES: Final = "failures/"
COUNTER, GAUGE = "counter", "gauge"
FAMILIES: Final = {COUNTER: CounterMetricFamily, GAUGE: GaugeMetricFamily}


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
