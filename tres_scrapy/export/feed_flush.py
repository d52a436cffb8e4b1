"""The extension that writes each item to the files of Scrapy's feeds before JOBDIR forgets it."""

from __future__ import annotations

from typing import Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.feedexport import FeedExporter

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.downloader.request import follows_links
from tres_scrapy.export.parquet import FORMAT
from tres_scrapy.export.unwritable import end_crawl
from tres_scrapy.extensions.session import CrawlSession


class FeedFlush:
    """Flushes the files of feeds after each item.

    Scrapy's exporter must receive `item_scraped` before this extension, and the job after it: so
    the order in EXTENSIONS is between theirs.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._failed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if not crawler.settings["JOBDIR"]:
            raise NotConfigured
        feeds = crawler.settings.getdict("FEEDS").values()
        own = not follows_links(crawler.spider)  # no JSON lines hold them
        if own and any(options.get("format") == FORMAT for options in feeds):
            raise ConfigError(
                "JOBDIR: items of a Parquet feed wait in memory, where a kill loses them: use "
                "another format, such as jsonlines, or leave JOBDIR out"
            )
        flush = cls(crawler)
        crawler.signals.connect(flush.item_scraped, signal=signals.item_scraped)
        return flush

    def item_scraped(self) -> None:
        exporter = self._crawler.get_extension(FeedExporter)
        for slot in () if exporter is None or self._failed else exporter.slots:
            try:
                if slot.file is not None:
                    slot.file.flush()
            except OSError as error:
                self._failed = True
                session = self._crawler.get_extension(CrawlSession)
                assert session is not None  # the add-on installs both
                end_crawl(slot.uri, error, session.job, session.stop)
                return
