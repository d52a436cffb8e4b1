"""Crawl with crawl4ai: STRATEGY SEED FILE_OF_WORDS REQUESTS; runs in its environment.

Its HTTP strategy does not read http_proxy, so a hook gives each request the proxy.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crawl4ai import (
    AdaptiveCrawler,
    AsyncWebCrawler,
    BestFirstCrawlingStrategy,
    CacheMode,
    CrawlerRunConfig,
    KeywordRelevanceScorer,
    LXMLWebScrapingStrategy,
)
from crawl4ai.async_crawler_strategy import AsyncHTTPCrawlerStrategy

UNLIMITED = 10**6  # links between the seed and a page


async def best_first(crawler: Any, seed: str, words: Sequence[str], requests: int) -> None:
    """Crawl across sites, the links first whose URLs have the words."""
    strategy = BestFirstCrawlingStrategy(
        max_depth=UNLIMITED,
        include_external=True,
        url_scorer=KeywordRelevanceScorer(keywords=list(words), weight=1.0),
        max_pages=requests,
    )
    config = CrawlerRunConfig(
        deep_crawl_strategy=strategy,
        scraping_strategy=LXMLWebScrapingStrategy(),
        cache_mode=CacheMode.BYPASS,
        semaphore_count=16,
        mean_delay=0,
        max_range=0,
        stream=True,
        verbose=False,
    )
    async for result in await crawler.arun(seed, config=config):
        print(result.url, result.success)


async def adaptive(crawler: Any, seed: str, words: Sequence[str], requests: int) -> None:
    """Crawl the site of the seed, then each site that it links to, in their order."""
    query, sites, seen = " ".join(words), [seed], {seed}
    for site in sites:
        state = await AdaptiveCrawler(crawler).digest(start_url=site, query=query)
        print(site, len(state.crawled_urls), state.metrics.get("confidence"))
        for result in state.knowledge_base if site == seed else ():
            for link in result.links.get("external", []):
                if link["href"] not in seen:
                    seen.add(link["href"])
                    sites.append(link["href"])


async def main(strategy: str, seed: str, words: str, requests: str) -> None:
    """Crawl with the named strategy."""
    fetcher = AsyncHTTPCrawlerStrategy(max_connections=16)
    proxy = os.environ["http_proxy"]

    def through_proxy(_: str, arguments: dict[str, Any]) -> None:
        arguments["proxy"] = proxy

    fetcher.set_hook("before_request", through_proxy)
    keywords = Path(words).read_text(encoding="utf-8").split("\n")
    run = {"best-first": best_first, "adaptive": adaptive}[strategy]
    async with AsyncWebCrawler(crawler_strategy=fetcher, verbose=False) as crawler:
        await run(crawler, seed, [word for word in keywords if word], int(requests))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
