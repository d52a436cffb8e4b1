"""Prepares a crawl on many machines from the options of a crawl, runs it and joins its output."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tres_scrapy.cluster.driver import Driver, has_failed
from tres_scrapy.cluster.part import join_parts
from tres_scrapy.cluster.plan import OUTPUT, Plan
from tres_scrapy.cluster.progress_line import ClusterProgress
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.extensions.job import identity_of, now
from tres_scrapy.policies.assembly import learning_setup, require_packs
from tres_scrapy.topic.several import load_packs
from tres_scrapy.webs.web_process import WebProcess

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Order:
    """What the user asks for: a job folder, shards, and the arguments and settings of a crawl."""

    job: Path
    shards: int
    address: str | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)


def crawl(order: Order) -> int:
    """Crawl; return the exit status. Raise ConfigError, PackError or JobError at the start."""
    config = _config_of(order)
    setup = learning_setup(config, load_packs(require_packs(config), lazily=True))
    with _web(config) as web:
        plan = _plan(order, config, web)
        progress = ClusterProgress(config.watch.progress_interval)
        last = Driver(plan, setup, order.address, progress.show).run()
        progress.close(last)
        if last.pages and order.shards > 1:
            sent = last.sum("bytes_sent") / last.pages / 1000
            logger.info("Sent between the processes: %.1f kB a page", sent)
        if web is not None:
            _say_truth(web.end())
    output = config.output.file or order.job / f"{config.topic}.jsonl"
    count = join_parts((plan.folder(shard) / OUTPUT for shard in range(plan.shards)), output)
    logger.info("Wrote %d relevant pages to %s", count, output)
    return int(has_failed(last))


def _config_of(order: Order) -> Config:
    """Return the options of the crawl; raise ConfigError if shards cannot crawl so."""
    given = {f"TRES_{name.upper()}": value for name, value in order.arguments.items()}
    number = {"TRES_SHARD": "0", "TRES_SHARDS": str(order.shards)}
    config = Config.from_settings({**order.settings, **given, **number})
    config.require_seed()
    if order.job.exists() and not order.job.is_dir():
        raise ConfigError(f"--job {str(order.job)!r} is a file: give a folder")
    return config


@contextmanager
def _web(config: Config) -> Iterator[WebProcess | None]:
    """Serve the offline web of a crawl, if it has one."""
    if config.web.kind is None or config.web.proxy is not None:
        yield None
        return
    web = WebProcess(config.web, config.topics[0])
    for note in web.notes:
        logger.info("The offline web: %s", note)
    yield web  # it ends with this process


def _plan(order: Order, config: Config, web: WebProcess | None) -> Plan:
    arguments = dict(order.arguments)
    if web is not None:
        arguments["web_proxy"] = web.proxy
        arguments.setdefault("seed", ",".join(web.seeds))
    arguments.pop("output", None)
    if config.models is not None:
        arguments["models"] = str(config.models.resolve())
    return Plan(
        *(order.job.resolve(), order.shards, config.pages),
        arguments=arguments,
        settings=order.settings,
        identity=identity_of(config),
        run=now(),
    )


def _say_truth(count: dict[str, Any]) -> None:
    logger.info(
        "By the web's true labels: %d pages, %d relevant, harvest rate %.4f, %d relevant domains",
        *(count["pages"], count["relevant"], count["harvest"], count["domains"]),
    )
