"""`tres cluster crawl`: one crawl in several processes, on one machine or on many."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path
from typing import Any, Final

import click

from tres_scrapy.cli.command import Option, pairs_of
from tres_scrapy.cli.crawl import STATS, SpiderCommand
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError, Group
from tres_scrapy.config.extra import require

GROUP: Final = """\
Run one crawl in several processes (shards), on this machine or on a Ray cluster.

Each shard fetches the pages of its own domains and sends links to other domains to the shards that
own them. One learner learns from all shards. The result is that of one crawl: a JSON lines file, a
record, a report, a live page and metrics. It needs Ray, the extra `cluster`.

\b
Examples:
  tres cluster crawl food --web synthetic --pages 5000 --shards 4 --job jobs/try
  tres report jobs/try
  tres explain jobs/try URL
"""
DESCRIPTION: Final = """\
Run one crawl in several processes, on this machine or on a Ray cluster. Each shard crawls its own
domains; all learn together. The same line resumes the crawl, whatever was killed. All other
options are those of `tres crawl`."""
EXAMPLES: Final = """\
Examples:
  tres cluster crawl food --web synthetic --pages 5000 --shards 4 --job jobs/try
  tres cluster crawl food https://example.org/ --pages 1000000 --shards 16 --job jobs/food \\
      --contact you@example.org
  tres cluster crawl food @seeds.txt --contact you@example.org --shards 64 --address auto \\
      --job /disk/food --snapshots s3://bucket/food
"""
FORMAT: Final = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"


class ClusterCommand(SpiderCommand):
    """The crawl in shards, which takes no option of Scrapy's but -s and -a."""

    def scrapys(self) -> list[click.Parameter]:
        mine = ("set", "a", "help_all")
        return [each for each in super().scrapys() if each.name in mine]


def crawl(
    arguments: dict[str, str],
    *,
    job: Path,
    shards: int,
    address: str | None,
    snapshots: str,
    snapshot_interval: int,
    **given: Any,
) -> int:
    """Crawl in shards; return the exit status."""
    settings = {STATS: "0"} | pairs_of(given["set"])
    if "JOBDIR" in settings:
        raise ConfigError("-s JOBDIR: a crawl in shards has --job")
    require("cluster", "tres cluster crawl")
    from scrapy.settings import Settings  # noqa: PLC0415 - it takes a while

    from tres_scrapy.cluster.plan import Plan  # noqa: PLC0415 - as below
    from tres_scrapy.cluster.start import crawl  # noqa: PLC0415 - it loads Ray
    from tres_scrapy.spiders.crawl import check_scrapys  # noqa: PLC0415

    check_scrapys(Settings(settings))
    level = settings.get("LOG_LEVEL", "INFO")
    logging.basicConfig(format=FORMAT, datefmt="%Y-%m-%d %H:%M:%S", level=level)
    plan = Plan(
        job,
        shards,
        arguments=arguments,
        settings=settings,
        snapshots=snapshots,
        interval=snapshot_interval,
    )
    try:
        return crawl(plan, address)
    except KeyboardInterrupt:
        sys.exit("tres cluster crawl: stopped at once; the same line resumes the crawl")


_option = partial(Option, group="Cluster")
OPTIONS: Final = (
    _option(["--job"], type=Path, required=True, metavar="DIR", help="folder of the crawl"),
    _option(["--shards"], type=int, default=4, metavar="N", help="parts of the crawl (default: 4)"),
    _option(
        ["--address"],
        metavar="ADDRESS",
        help="of a Ray cluster: auto, or HOST:PORT; without it, Ray is started on this machine",
    ),
    _option(
        ["--snapshots"],
        metavar="URL",
        default="",
        help="where shards are copied to, such as s3://bucket/food: --job is then a folder on "
        "each node's own disk, and may have environment variables ('$SCRATCH/food')",
    ),
    _option(
        ["--snapshot-interval"],
        type=click.IntRange(1),
        metavar="SECONDS",
        default=60,
        help="time between two snapshots of a shard (default: 60)",
    ),
)

command = click.Group("cluster", help=GROUP, no_args_is_help=False)
command.add_command(
    ClusterCommand(
        "crawl",
        ("topic", "seed"),
        [each for each in Config.declared().values() if each.group is not Group.CLUSTER],
        crawl,
        OPTIONS,
        syntax="TOPIC URL... --job DIR [--shards N] [options of tres crawl]",
        help=DESCRIPTION,
        short_help="Start or resume a crawl in shards.",
        epilog=EXAMPLES,
    )
)
