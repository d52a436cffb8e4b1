"""`tres refresh`: visit the pages of a finished crawl again."""

from __future__ import annotations

from typing import Final

from tres_scrapy.cli.crawl import SpiderCommand, run_spider
from tres_scrapy.refresh.settings import RefreshConfig

EXAMPLES: Final = """\
Examples:
  tres refresh output/food.jsonl --budget 1000
  tres refresh output/food.jsonl --budget 1000 --horizon 1d --watch
"""

command = SpiderCommand(
    "refresh",
    ("collection",),
    RefreshConfig.arguments(),
    run_spider("refresh"),
    syntax="COLLECTION [options]",
    help="Visit the pages of a finished crawl again and report what has changed. COLLECTION is its "
    "JSON lines file, or any other with a url on each line.",
    epilog=EXAMPLES,
)
