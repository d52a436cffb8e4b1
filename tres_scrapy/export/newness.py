"""The pipeline that marks pages and domains known before the crawl."""

from __future__ import annotations

import logging
from typing import Any, Self

from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named
from tres_scrapy.export.known import Known
from tres_scrapy.items import RelevantPage
from tres_scrapy.url.message import plainly, plural

logger = logging.getLogger(__name__)


class NewnessPipeline:
    """Marks relevant pages whose URL or domain is in the files of TRES_KNOWN."""

    def __init__(self, known: Known) -> None:
        self._known = known

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        paths = config.output.known
        if not paths:
            raise NotConfigured
        known = Known(psl_private=config.frontier.psl_private)
        for path in paths:
            try:
                known.read(path)
            except (OSError, EOFError, ValueError) as error:
                name = named("TRES_KNOWN")
                raise ConfigError(f"{name} cannot be read: {plainly(error)}") from None
        urls, domains = len(known.urls), len(known.domains)
        logger.info(
            "%s: %d %s and %d %s",
            named("TRES_KNOWN"),
            urls,
            plural(urls, "URL"),
            domains,
            plural(domains, "domain"),
        )
        return cls(known)

    def process_item(self, item: Any) -> Any:
        if isinstance(item, RelevantPage):
            item.new = self._known.urls.isdisjoint((item.url, item.final_url))
            item.new_domain = item.domain not in self._known.domains
        return item
