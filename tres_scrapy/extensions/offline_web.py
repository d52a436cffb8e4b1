"""The extension that starts an offline web for the crawl, and the middleware that leads to it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.guest import offered
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.config.typed import named
from tres_scrapy.crawl.assembly import require_packs
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.url.message import counted

FIGURES: Final = ("pages", "relevant", "harvest", "domains")  # of a web's count, by true labels

logger = logging.getLogger(__name__)


def start_web(options: WebOptions, topics: Sequence[str]) -> Any:
    """Start an offline web that a guest offers; a page on any of the topics is relevant.

    Return its process: `proxy` is its address, `seeds` are its seeds, `labelled` is whether its
    pages have true labels, and `end` stops it and returns its count of the fetches. What the web
    notes for the user is logged. Raise ConfigError if the web does not start.
    """
    webs = offered("webs")
    if not webs:
        raise ConfigError(
            f"{named('TRES_WEB')} {options.kind!r}: this installation has no such web"
        )
    web = webs[0](options, topics)
    for note in web.notes:
        logger.info("The offline web: %s", note)
    return web


def in_words(count: Mapping[str, Any], pages: int) -> str:
    """Return the count of a web in words, after `pages` pages of the whole crawl."""
    found, relevant, domains = (count[name] for name in ("pages", "relevant", "domains"))
    since = ", since this start" if found < pages else ""
    return (
        f"By the web's true labels: {counted(found, 'page')}, {relevant} relevant, harvest "
        f"rate {count['harvest']:.4f}, {counted(domains, 'relevant domain')}{since}"
    )


class OfflineWeb:
    """An offline web, the proxy for every request of the crawl.

    It runs in a process that this extension starts, unless `web_proxy` is its address.
    """

    def __init__(self, crawler: Crawler, config: Config) -> None:
        self._crawler = crawler
        self._stats = crawler.stats
        self._web: Any = None
        self.seeds: tuple[str, ...] = ()
        if config.web.proxy is not None:
            self.proxy = config.web.proxy
            return
        self._web = start_web(config.web, config.topics)
        self.proxy, self.seeds = self._web.proxy, self._web.seeds

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.web.kind is None:
            raise NotConfigured
        if config.topics and config.words.file is None:
            require_packs(config)
        web = cls(crawler, config)
        crawler.signals.connect(web.spider_closed, signal=signals.spider_closed)
        return web

    def spider_closed(self) -> None:
        """Stop the web and log its own count of the crawl, if it has true labels."""
        if self._web is None:
            return
        count = self._web.end()
        if unrecorded := count["by_kind"].get("unrecorded"):
            self._stats.set_value("tres/web/unrecorded", unrecorded)
            logger.info("%d of the requested URLs are not in the recording", unrecorded)
        if not self._web.labelled:
            return
        for name in FIGURES:
            self._stats.set_value(f"tres/web/{name}", count[name])
        if count["pages"]:
            session = self._crawler.get_extension(CrawlSession)
            logger.info(in_words(count, 0 if session is None else session.crawl.pages))


class OfflineProxyMiddleware:
    """Makes the offline web the proxy of every request, robots.txt included."""

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        offline_web = crawler.get_extension(OfflineWeb)
        if offline_web is None:
            raise NotConfigured
        return cls(offline_web.proxy)

    def process_request(self, request: Request) -> None:
        request.meta["proxy"] = self._proxy
