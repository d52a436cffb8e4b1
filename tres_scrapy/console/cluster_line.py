"""`tres cluster crawl`: one crawl in several processes, on one machine or on many."""

from __future__ import annotations

import argparse
import logging
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.extra import require
from tres_scrapy.console.spider_option import SPIDERS, LineParser
from tres_scrapy.lab.webs.web_process import OfflineWebError
from tres_scrapy.run.job_file import JobError
from tres_scrapy.topic.pack import PackError

USAGE: Final = "tres cluster crawl TOPIC URL... --job DIR [--shards N] [options of tres crawl]"
DESCRIPTION: Final = """\
Run one crawl in several processes, on this machine or on a Ray cluster. Each shard crawls its own
domains; all learn together. The same line resumes the crawl, whatever was killed."""
EXAMPLES: Final = """\
Examples:
  tres cluster crawl food --web synthetic --pages 5000 --shards 4 --job jobs/try
  tres cluster crawl food https://example.org/ --pages 1000000 --shards 16 --job jobs/food
  tres cluster crawl food @seeds.txt --shards 64 --address auto --job /shared/food
  tres cluster crawl food @seeds.txt --shards 64 --address auto --job /disk/food \
      --snapshots s3://bucket/food
All other options are those of `tres crawl`: see tres crawl --help
"""
FORMAT: Final = "%(asctime)s [%(name)s] %(levelname)s: %(message)s"


def run_cluster(given: Sequence[str]) -> int:
    """Run `tres cluster` with the rest of the command line; return the exit status."""
    parser = _parser()
    options, rest = parser.parse_known_args(given)
    if options.command != "crawl":
        parser.error(f"unknown command {options.command!r}: the only one is crawl")
    try:
        require("cluster", "tres cluster")
        arguments, settings = _parted(SPIDERS["crawl"].arguments("cluster crawl", rest))
        from tres_scrapy.cluster.driver import LostError  # noqa: PLC0415 - it loads Ray
        from tres_scrapy.cluster.snapshot_store import SnapshotError  # noqa: PLC0415
        from tres_scrapy.cluster.start import Order, crawl  # noqa: PLC0415

        level = settings.get("LOG_LEVEL", "INFO")
        logging.basicConfig(format=FORMAT, datefmt="%Y-%m-%d %H:%M:%S", level=level)
        try:
            place = options.job, options.shards, options.address
            snapshots = options.snapshots, options.snapshot_interval
            return crawl(Order(*place, *snapshots, arguments, settings))
        except (LostError, SnapshotError) as error:
            sys.exit(f"tres cluster: {error}")
        except KeyboardInterrupt:
            sys.exit("tres cluster: stopped at once; the same line resumes the crawl")
    except (ConfigError, JobError, OfflineWebError, PackError) as error:
        sys.exit(f"tres cluster: {error}")


def _parser() -> LineParser:

    parser = LineParser(
        prog="tres cluster",
        usage=USAGE,
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("command", metavar="crawl", help="the crawl")
    parser.add_argument(
        "--job", type=Path, required=True, metavar="DIR", help="folder of the crawl"
    )
    parser.add_argument(
        "--shards", type=int, default=4, metavar="N", help="parts of the crawl (default: 4)"
    )
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="of a Ray cluster: auto, or HOST:PORT; without it, Ray is started on this machine",
    )
    parser.add_argument(
        "--snapshots",
        metavar="URL",
        default="",
        help="where shards are copied to, such as s3://bucket/food: --job is then a folder on each "
        "node's own disk, and may have environment variables ('$SCRATCH/food')",
    )
    parser.add_argument(
        "--snapshot-interval",
        type=_seconds,
        metavar="SECONDS",
        default=60.0,
        help="time between two snapshots of a shard (default: 60)",
    )
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number of seconds, at least 1")
    return seconds


def _parted(words: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the arguments and the settings in the words of a command line of Scrapy."""
    found: dict[str, dict[str, str]] = {"-a": {}, "-s": {}}
    for option, pair in zip(words[2::2], words[3::2], strict=True):
        if option not in found:
            raise ConfigError(f"{option}: not an option of tres cluster")
        name, _, value = pair.partition("=")
        found[option][name] = value
    if "JOBDIR" in found["-s"]:
        raise ConfigError("--jobdir: a crawl in shards has --job")
    return found["-a"], found["-s"]
