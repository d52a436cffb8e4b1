"""`tres surface`: find the records behind search boxes."""

from __future__ import annotations

from typing import Final

from tres_scrapy.cli.crawl import SpiderCommand, run_spider
from tres_scrapy.config.config import Config
from tres_scrapy.surface.settings import SurfaceOptions

EXAMPLES: Final = """\
Examples:
  tres surface food https://example.org/search --surface-queries 50
"""

command = SpiderCommand(
    "surface",
    ("topic", "seed"),
    [*SurfaceOptions.declared().values(), *Config.declared().values()],
    run_spider("surface"),
    syntax="TOPIC [URL | @FILE]... [options]",
    help="Find the records behind the search boxes of sites, and crawl on from there.",
    epilog=EXAMPLES,
)
