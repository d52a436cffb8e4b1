"""The metrics of a crawl in shards: sums over all shards, and some figures of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.status import Status
from tres_scrapy.export.metrics import (
    COUNTER,
    FAILURES,
    FAMILIES,
    GAUGE,
    LAG,
    CrawlCollector,
    Metric,
    Snapshot,
)

# With a label `shard`. The names are not those of the sums, so that sum() counts nothing twice.
SHARD_METRICS: Final = (
    Metric("tres_shard_pages_total", COUNTER, "pages", "Pages fetched and judged."),
    Metric("tres_shard_relevant_pages_total", COUNTER, "relevant_pages", "Relevant pages."),
    Metric("tres_shard_frontier_links", GAUGE, "frontier_size", "Links waiting in the frontier."),
    Metric("tres_shard_outbox_parcels", GAUGE, "outbox", "Parcels of links not yet delivered."),
    Metric("tres_shard_sent_bytes_total", COUNTER, "bytes_sent", "Bytes sent to others."),
    Metric("tres_shard_last_q", GAUGE, "last_q", "Q of the last chosen link."),
    Metric("tres_shard_report_age_seconds", GAUGE, "report_age", "Time since its last report."),
    Metric("tres_shard_snapshot_age_seconds", GAUGE, "snapshot_age", "Time since its snapshot."),
)
ONE: Final = ("q_loss", "skipped_updates", "updates")  # of the one learner: the latest, not sums


class ClusterCollector(Collector):
    """Reports the latest state of a crawl; may be called in any thread."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self.overview = Overview({}, {}, None, "", "")
        self._crawl = CrawlCollector(labels, lambda: 0.0)

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield the families of the crawl, and those of the shards."""
        overview = self.overview
        self._crawl.snapshot = summed(overview)
        yield from (family for family in self._crawl.collect() if family.name != LAG.name)
        for metric in SHARD_METRICS:
            family = FAMILIES[metric.kind](metric.name, metric.meaning, labels=["shard"])
            for shard, status in sorted(overview.statuses.items()):
                figures = _figures(status, overview.ages.get(shard))
                if metric.figure in figures:
                    family.add_metric([str(shard)], figures[metric.figure])
            yield family


def summed(overview: Overview) -> Snapshot:
    """Return the figures of a crawl: sums of those of its shards, or what fits them better."""
    statuses = overview.statuses.values()
    found: dict[str, list[float]] = {}
    for status in statuses:
        for name, value in status.figures.items():
            if not isinstance(value, str):
                found.setdefault(name, []).append(float(value))
    total = {name: sum(values) for name, values in found.items()}
    total |= {name: max(found[name]) for name in ONE if name in found}
    total["leased"] = sum(status.leased for status in statuses)
    total["harvest_rate"] = total.get("relevant_pages", 0.0) / max(1, overview.pages)
    failures = sum(value for name, value in total.items() if name.startswith(FAILURES))
    total["choices"] = overview.pages + failures + total["leased"]
    return total


def _figures(status: Status, age: float | None) -> dict[str, float]:
    figures = {k: float(v) for k, v in status.figures.items() if not isinstance(v, str)}
    figures |= {"pages": status.pages, "last_q": status.value}
    return figures if age is None else figures | {"report_age": age}
