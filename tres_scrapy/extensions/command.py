"""Which crawlers crawl: Scrapy's other commands make one too, to fetch or try a page."""

from __future__ import annotations

from typing import Final

from scrapy.crawler import Crawler

COMMANDS: Final = "scrapy.commands."  # `fetch`, `parse`, `check` and `bench` bring their own start


def crawls(crawler: Crawler) -> bool:
    """Return whether a crawler runs a spider to its end.

    `scrapy shell` makes a crawler that never crawls; other commands give their spider another
    start, or bring their own spider.
    """
    spider = crawler.spidercls
    owners = (spider.__module__, getattr(spider.start, "__module__", ""))
    return crawler.crawling and not any(owner.startswith(COMMANDS) for owner in owners)
