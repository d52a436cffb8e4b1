# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-seeds`: rate seeds before a long crawl."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import fill
from typing import Final

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from tres_scrapy.commands.calling import called, named
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.parser import joined, seeds
from tres_scrapy.crawl.assembly import threshold_of
from tres_scrapy.extensions.topic_source import task_of
from tres_scrapy.spiders.fetch import run_politely
from tres_scrapy.spiders.seeds import SeedSpider
from tres_scrapy.topic.judge import Judge
from tres_scrapy.topic.judge_process import Worker, WorkerError
from tres_scrapy.topic.pack import PackError
from tres_scrapy.topic.seed_rating import SeedRating, ranked
from tres_scrapy.topic.several import load_packs
from tres_scrapy.url.message import printable

INTERRUPTED: Final = 130
WIDEST: Final = 36  # characters of a URL in the table
HEAD: Final = ("", "seed", "P", "links", "likely", "sample", "sites", "language", "robots.txt")
LINE: Final = "{:5}{:36}{:>6}{:>6}{:>7}{:>7}{:>6}  {:9}{}"
LEGEND: Final = """\
P: P(relevant) of the seed. likely: links whose text is on topic.
sample: of the best links that were fetched, how many are on topic. sites: domains of the links."""
OPTIONS: Final = {  # of this command: the setting, the metavar and the meaning
    "keywords": ("TRES_KEYWORDS", "FILE", "file of keywords, one a line, instead of TOPIC"),
    "models": ("TRES_MODELS", "DIR", "folder of topic packs (default: ./models and the installed)"),
    "web": ("TRES_WEB", "WEB", "offline web instead of the real one, such as recorded"),
    "web_data": ("TRES_WEB_DATA", "FILE", "file of the offline web, such as a WARC file"),
}


class Command(ScrapyCommand):
    """Rate seeds and say which to take."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "TOPIC | --keywords FILE [URL | @FILE]... [--links N] [--json]"

    def short_desc(self) -> str:
        return "Rate seeds before a long crawl"

    def long_desc(self) -> str:
        return fill(
            "Fetch each seed and a few of its best links, politely, and print what they promise: "
            "P(relevant) of the page, its links, how many of them look on topic, and how many of "
            "those fetched are. The best seed comes first. The exit status is 1 if no seed could "
            "be fetched."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.epilog = "Example: scrapy tres-seeds food https://example.org/links @more.txt"
        for name, (_, metavar, meaning) in OPTIONS.items():
            parser.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=meaning)
        links = "links of each seed to fetch (default: %(default)s)"
        parser.add_argument("--links", metavar="N", type=int, default=5, help=links)
        parser.add_argument("--json", action="store_true", help="print one JSON object per line")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        wrong = [each for each in args if each.startswith("-")]
        if wrong or not (args or opts.keywords):
            raise UsageError(f"give a topic and URLs, not {named(wrong or args)}")
        if opts.links < 0:
            raise UsageError(f"--links {opts.links} must be 0 or more")
        assert self.settings is not None
        try:
            config, start = _read(args, opts, self.settings)
            spider = _rated(config, self.settings, opts.links)
        except (ConfigError, PackError, WorkerError) as error:
            sys.exit(f"scrapy tres-seeds: {error}")
        found = ranked([*spider.ratings.values()])
        if opts.json:
            print(*(json.dumps(each.as_dict()) for each in found), sep="\n")
        else:
            print(table(found), "", advice(found, start), sep="\n")
        self.exitcode = int(all(each.error for each in found))
        if spider.reason != "finished":
            print(f"{called('seeds')}: interrupted: some pages are missing", file=sys.stderr)
            self.exitcode = INTERRUPTED


def _read(
    args: list[str], opts: argparse.Namespace, settings: Settings
) -> tuple[Config, list[str]]:
    """Return the options of a run, and the words of the crawl that may follow.

    Raise ConfigError if a value is wrong.
    """
    start = list[str]()
    if args and not (opts.keywords and not re.fullmatch(r"[\w,+-]+", args[0])):
        topic, *args = args
        start.append(topic)
        settings.set("TRES_TOPIC", topic, priority="cmdline")
    for name, (setting, _, _) in OPTIONS.items():
        if value := getattr(opts, name):
            start += [f"--{name.replace('_', '-')}", value]
            settings.set(setting, value, priority="cmdline")
    lists = [each for each in args if each.startswith("@")]
    plain = [each for each in args if not each.startswith("@")]
    try:
        urls = [url for text in (*lists, *([joined(plain)] * bool(plain))) for url in seeds(text)]
    except ValueError as error:
        raise ConfigError(f"seeds {' '.join(args)!r}: {error}") from None
    settings.set("TRES_SEED", ",".join(urls), priority="cmdline")
    config = Config.from_settings(settings)
    if not urls and config.web.kind is None:
        raise ConfigError("no seed: write URLs after the topic, or @FILE with one URL per line")
    config.require_seed()
    return config, start


def _rated(config: Config, settings: Settings, most: int) -> SeedSpider:
    """Fetch and rate the seeds."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tres-seeds-")))
        task = task_of(config, folder / "topic.jsonl", None)
        worker = stack.enter_context(closing(Worker(task)))
        pack = load_packs(task.packs, lazily=config.words.file is None)
        threshold = threshold_of(config, pack)
        worker.wait()
        judge = Judge(pack, worker)
        stack.callback(judge.close)
        return run_politely(
            SeedSpider,
            settings,
            seeds=config.seed,
            judge=judge,
            threshold=threshold,
            most=most,
            max_delay=config.download.max_crawl_delay,
        )


def table(ratings: Sequence[SeedRating]) -> str:
    """Return the figures of all seeds as an aligned table."""
    return "\n".join([LINE.format(*HEAD), *(_row(each) for each in ratings), "", LEGEND])


def advice(ratings: Sequence[SeedRating], start: Sequence[str]) -> str:
    """Return which seeds to take and which to leave, and why; `start` begins the crawl's line."""
    good = [each for each in ratings if each.is_good]
    rest = [each for each in ratings if not each.is_good]
    lines = [f"Take {len(good)} of {len(ratings)}:" if good else "Take none of these:"]
    for number, each in enumerate([*good, *rest]):
        lines += ["Leave:"] * (number == len(good) > 0)
        lines.append(f"  {_short(each.url):{WIDEST}}  {each.why}")
    if good:
        words = ["tres", "crawl", *start, *(each.url for each in good)]
        lines += ["", f"Next: {shlex.join(words)}"]
    else:
        lines += ["A good seed links to many pages of the topic: a directory, a list, a blog roll."]
    return "\n".join(map(printable, lines))


def _row(each: SeedRating) -> str:
    robots = (each.robots or "-") + (f", {each.delay:g} s" if each.delay else "")
    figures = ["-"] * 6
    if not each.error:
        figures = [
            f"{each.probability:.2f}",
            f"{each.links:,}",
            f"{each.likely.total():,}",
            f"{each.on_topic}/{each.fetched}",
            f"{each.sites:,}",
            " ".join(code for code, _ in each.languages.most_common(3)) or "-",
        ]
    mark = "take" if each.is_good else ""
    return LINE.format(mark, _short(each.url), *figures, robots).rstrip()


def _short(url: str) -> str:
    """Return a URL of at most WIDEST characters: its beginning and its end."""
    text = printable(re.sub(r"^https?://", "", url).rstrip("/"))
    half = (WIDEST - 2) // 2
    return text if len(text) < WIDEST else f"{text[:half]}…{text[-half:]}"
