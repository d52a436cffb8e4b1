"""Crawl with bytecrawl: STRATEGY SEED FILE_OF_WORDS REQUESTS; runs in its environment."""

from __future__ import annotations

import sys
from pathlib import Path

from bytecrawl.crawler import STRATEGIES


def main(strategy: str, seed: str, words: str, requests: str) -> None:
    """Crawl across sites, without a delay.

    It counts failures that the web never sees as pages, so it may take twice as many.
    """
    query = " ".join(Path(words).read_text(encoding="utf-8").split())
    crawler = STRATEGIES[strategy](query=query, delay=0, same_domain=False)
    print(crawler.crawl(seed, max_pages=2 * int(requests)).stats)


if __name__ == "__main__":
    main(*sys.argv[1:])
