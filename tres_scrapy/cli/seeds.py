"""`tres seeds`: rate seeds before a long crawl."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any, Final

import click
from scrapy.settings import Settings

from tres_scrapy.cli.command import INTERRUPTED, Command, Option, option, project_settings, refuse
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.parser import joined, seeds
from tres_scrapy.config.typed import option_of
from tres_scrapy.spiders.seeds import rate_seeds
from tres_scrapy.topic.seed_rating import SeedRating, ranked
from tres_scrapy.url.message import printable

WIDEST: Final = 36  # characters of a URL in the table
HEAD: Final = ("", "seed", "P", "links", "likely", "sample", "sites", "language", "robots.txt")
LINE: Final = "{:5}{:36}{:>6}{:>6}{:>7}{:>7}{:>6}  {:9}{}"
LEGEND: Final = """\
P: P(relevant) of the seed. likely: links whose text is on topic.
sample: of the best links that were fetched, how many are on topic. sites: domains of the links."""
SETTINGS: Final = ("keywords", "models", "web", "web_data")  # that are options here


@click.command(
    cls=Command,
    syntax="TOPIC | --keywords FILE [URL | @FILE]... [--links N] [--json]",
    epilog="Example: tres seeds food https://example.org/links @more.txt",
    params=[Option.of(each) for each in Config.declared().values() if each.argument in SETTINGS],
)
@click.argument("words", nargs=-1)
@option(
    "--links",
    metavar="N",
    type=int,
    default=5,
    help="links of each seed to fetch (default: 5)",
)
@option("--json", "as_json", is_flag=True, help="print one JSON object per line")
def command(words: tuple[str, ...], links: int, as_json: bool, **given: Any) -> int:
    """Fetch each seed and a few of its best links, politely, and print what they promise.

    That is P(relevant) of the page, its links, how many of them look on topic, and how many of
    those fetched are. The best seed comes first. The exit status is 1 if no seed could be fetched.
    """
    wrong = [each for each in words if each.startswith("-")]
    if wrong or not (words or given["keywords"]):
        refuse("a topic and URLs", wrong or words)
    if links < 0:
        raise click.UsageError(f"--links {links} must be 0 or more")
    settings = project_settings()
    config, start = _read([*words], given, settings)
    spider = rate_seeds(config, settings, links)
    found = ranked([*spider.ratings.values()])
    if as_json:
        print(*(json.dumps(each.as_dict()) for each in found), sep="\n")
    else:
        print(table(found), "", advice(found, start), sep="\n")
    if spider.reason != "finished":
        print("tres seeds: interrupted: some pages are missing", file=sys.stderr)
        return INTERRUPTED
    return int(all(each.error for each in found))


def _read(
    words: list[str], given: dict[str, str | None], settings: Settings
) -> tuple[Config, list[str]]:
    """Return the options of a run, and the words of the crawl that may follow.

    Raise ConfigError if a value is wrong.
    """
    start = list[str]()
    if words and not (given["keywords"] and not re.fullmatch(r"[\w,+-]+", words[0])):
        topic, *words = words
        start.append(topic)
        settings.set("TRES_TOPIC", topic, priority="cmdline")
    for name in SETTINGS:
        if value := given[name]:
            start += [option_of(name), value]
            settings.set(f"TRES_{name.upper()}", value, priority="cmdline")
    lists = [each for each in words if each.startswith("@")]
    plain = [each for each in words if not each.startswith("@")]
    try:
        urls = [url for text in (*lists, *([joined(plain)] * bool(plain))) for url in seeds(text)]
    except ValueError as error:
        raise ConfigError(f"seeds {' '.join(words)!r}: {error}") from None
    settings.set("TRES_SEED", ",".join(urls), priority="cmdline")
    config = Config.from_settings(settings)
    if not urls and config.web.kind is None:
        raise ConfigError("no seed: write URLs after the topic, or @FILE with one URL per line")
    config.require_seed()
    return config, start


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
