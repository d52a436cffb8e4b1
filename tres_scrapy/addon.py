"""The add-on that turns a Scrapy project into a focused crawler."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.httpcompression import HttpCompressionMiddleware
from scrapy.downloadermiddlewares.redirect import MetaRefreshMiddleware, RedirectMiddleware
from scrapy.downloadermiddlewares.retry import RetryMiddleware
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.extensions.spiderstate import SpiderState
from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings
from scrapy.utils.misc import load_object

from tres_scrapy import settings as ours
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.download import NEVER
from tres_scrapy.config.preset import set_scrapys
from tres_scrapy.config.typed import named
from tres_scrapy.downloader.compression import BoundedCompression
from tres_scrapy.downloader.contact import check_contact, set_contact
from tres_scrapy.downloader.delay import CrawlDelay, CrawlDelayMiddleware, SharedAddresses
from tres_scrapy.downloader.handler import BoundedHandler
from tres_scrapy.downloader.identity import Identity
from tres_scrapy.downloader.private_address import PrivateAddressMiddleware
from tres_scrapy.downloader.refusal import (
    MetaRefreshes,
    OtherRetries,
    Redirects,
    replace_middleware,
)
from tres_scrapy.downloader.rendering import Rendering
from tres_scrapy.downloader.request import crawls, follows_links
from tres_scrapy.downloader.robots import RobotsMiddleware
from tres_scrapy.export.archive import Archive, ArchiveMiddleware
from tres_scrapy.export.csv_table import CsvPipeline
from tres_scrapy.export.final_output import FinalOutput
from tres_scrapy.export.known import NewnessPipeline
from tres_scrapy.export.late_item import LateItems
from tres_scrapy.export.metrics import Metrics
from tres_scrapy.export.output_file import FeedFlush, JsonLinesPipeline
from tres_scrapy.export.parquet import FORMAT, ParquetItemExporter, check_parquet
from tres_scrapy.extensions.asking import AskAnswerer
from tres_scrapy.extensions.dashboard import Dashboard
from tres_scrapy.extensions.offline_web import OfflineProxyMiddleware, OfflineWeb
from tres_scrapy.extensions.own_queue import JsonSpiderState, keep_as_json
from tres_scrapy.extensions.progress import Progress
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.sitemaps import Sitemaps
from tres_scrapy.middlewares.message import CharsetMiddleware, CredentialMiddleware
from tres_scrapy.middlewares.reward import RewardMiddleware
from tres_scrapy.middlewares.visit import VisitMiddleware
from tres_scrapy.scheduler import TreeFrontierScheduler

logger = logging.getLogger(__name__)

Components = dict[str, dict[type, int | None]]
# What every spider of this package fetches with. Others may have written a list of URLs, and pages
# redirect: no URL is trusted more than a link.
FETCHING: Components = {
    "DOWNLOADER_MIDDLEWARES": {
        OfflineProxyMiddleware: 10,
        CharsetMiddleware: 585,  # between decompression and meta refreshes
        CredentialMiddleware: 755,  # after HttpProxy: a proxy resolves names itself
        PrivateAddressMiddleware: 760,
        CrawlDelayMiddleware: 765,  # when the slot of the address is known
    },
    "EXTENSIONS": {
        OfflineWeb: 100,
        SharedAddresses: 125,
        CrawlDelay: 130,
        SpiderState: None,  # it unpickles a file of JOBDIR, which can run code
    },
}
# Scrapy's middlewares, and what stands in their place: it gives a kind to each failure.
REPLACED: dict[type, type] = {
    RobotsTxtMiddleware: RobotsMiddleware,
    RedirectMiddleware: Redirects,
    MetaRefreshMiddleware: MetaRefreshes,
    HttpCompressionMiddleware: BoundedCompression,
}
# What a crawl from a frontier has besides.
CRAWLING: Components = {
    "SPIDER_MIDDLEWARES": {RewardMiddleware: 10},  # before HttpError, which hides failures
    "DOWNLOADER_MIDDLEWARES": {
        ArchiveMiddleware: 740,  # sees bodies as received, and URLs without credentials
        VisitMiddleware: 950,  # after Scrapy's cache
    },
    "ITEM_PIPELINES": {NewnessPipeline: 880, CsvPipeline: 890, JsonLinesPipeline: 900},
    "EXTENSIONS": {
        JsonSpiderState: 0,  # in the place of Scrapy's
        FeedFlush: 105,  # after Scrapy's FeedExporter, before the job of the learner
        CrawlSession: 110,
        Sitemaps: 115,
        Progress: 120,
        Archive: 140,
        Metrics: 145,
        LateItems: 147,
        FinalOutput: 148,  # before the Recorder writes its report
        Recorder: 150,
        Rendering: 160,
        Dashboard: 170,
        AskAnswerer: 180,
    },
}
# Limits that protect a crawl of the open web, and our name; a project may set its own.
LIMITS: dict[str, Any] = {
    name: getattr(ours, name)
    for name in (
        "DOWNLOAD_MAXSIZE",
        "DOWNLOAD_TIMEOUT",
        "DNS_TIMEOUT",
        "DOWNLOAD_WARNSIZE",
        "USER_AGENT",  # Scrapy's names scrapy.org
    )
}
# Scrapy gives up no site: the links of a project's own spider are its own.
OF_OTHERS: dict[str, Any] = {"TRES_MAX_FAILURES": 2**31 - 1}
# No open port for commands, unless the project sets it.
CLOSED: dict[str, Any] = {"REMOTE_CONTROL_ENABLED": False, "TELNETCONSOLE_ENABLED": False}
# A web on this machine needs no politeness.
OFFLINE: dict[str, Any] = {
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
}
# By name: a crawl without rendering does not import Playwright.
BROWSER: dict[str, Any] = dict.fromkeys(
    ("http", "https"), "tres_scrapy.downloader.render_handler.RenderHandler"
)


class TresAddon:
    """Installs the scheduler, the reward middleware, the extensions and the pipeline.

    A spider with `has_frontier = False` gets only what it fetches politely and safely with. Only
    where a spider crawls: `scrapy shell`, `fetch` and other commands work as without it.
    """

    def __init__(
        self,
        *,
        follows_all: bool = True,
        has_frontier: bool = True,
        start_urls: Iterable[str] = (),
    ) -> None:
        self._follows_all = follows_all
        self._has_frontier = has_frontier
        self._start_urls = start_urls

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawls(crawler):
            raise NotConfigured
        spider = crawler.spidercls
        return cls(
            follows_all=follows_links(spider),
            has_frontier=getattr(spider, "has_frontier", True),
            start_urls=getattr(crawler.spider or spider, "start_urls", ()),
        )

    def update_settings(self, settings: BaseSettings) -> None:
        _install(settings, FETCHING)
        for name, value in (LIMITS | CLOSED).items():
            settings.set(name, value, "addon")
        set_contact(settings)
        _bound_headers(settings)
        _check_identity(settings)
        for scrapys, own in REPLACED.items():
            replace_middleware(settings, scrapys, own)
        if self._has_frontier:
            self._add_frontier(settings)
        if Config.of(settings).web.kind is not None:
            for name, value in OFFLINE.items():
                settings.set(name, value, "project")  # over the project's, under the user's -s

    def _add_frontier(self, settings: BaseSettings) -> None:
        if not self._follows_all:
            for name, value in OF_OTHERS.items():
                settings.set(name, value, "addon")
        config = Config.of(settings)
        config.require_packages()
        if not config.shard.count:  # else the whole crawl has been checked
            urls = (*config.seed, *self._start_urls)
            check_contact(settings["USER_AGENT"], config, urls)
        check_parquet(settings)
        exporters = settings.getdict("FEED_EXPORTERS")
        settings.set("FEED_EXPORTERS", {FORMAT: ParquetItemExporter} | exporters, "addon")
        _set_scheduler(settings)
        _install(settings, CRAWLING)
        set_scrapys(settings)
        replace_middleware(settings, RetryMiddleware, OtherRetries)
        keep_as_json(settings)
        if config.render.mode != NEVER:
            handlers = settings.getdict("DOWNLOAD_HANDLERS") | BROWSER
            settings.set("DOWNLOAD_HANDLERS", handlers, "project")


def _install(settings: BaseSettings, components: Components) -> None:
    """Add components that the project has neither installed nor turned off."""
    for name, orders in components.items():
        for component, order in orders.items():
            settings.setdefault_in_component_priority_dict(name, component, order)


def _set_scheduler(settings: BaseSettings) -> None:
    """Install the scheduler; raise ConfigError if the project sets another one."""
    own = (settings.getpriority("SCHEDULER") or 0) > SETTINGS_PRIORITIES["addon"]
    if own and load_object(settings["SCHEDULER"]) is not TreeFrontierScheduler:
        raise ConfigError(
            f"SCHEDULER {settings['SCHEDULER']!r}: TRES has its own scheduler; unset it, or set "
            "ADDONS only in the custom_settings of the spiders that use TRES"
        )
    settings.set("SCHEDULER", TreeFrontierScheduler, "addon")


def _bound_headers(settings: BaseSettings) -> None:
    """Limit response headers for each scheme for which the project sets no handler."""
    for scheme, handler in ours.DOWNLOAD_HANDLERS.items():
        if scheme not in settings.getdict("DOWNLOAD_HANDLERS"):
            settings["DOWNLOAD_HANDLERS"].set(scheme, handler, "addon")


def _check_identity(settings: BaseSettings) -> None:
    """Raise TresError if requests are to be signed and cannot be."""
    path = Config.of(settings).download.identity
    if path is None:
        return
    identity = Identity.read(path)
    logger.info("Requests are signed for %s, with key %s", identity.agent, identity.keyid)
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in ours.DOWNLOAD_HANDLERS:
        if handlers[scheme] and not issubclass(load_object(handlers[scheme]), BoundedHandler):
            raise ConfigError(
                f"DOWNLOAD_HANDLERS[{scheme!r}] {handlers[scheme]!r} does not sign requests: unset "
                f"it, or leave out {named('TRES_IDENTITY')}"
            )
