"""`tres seeds`: rate seeds before a long crawl."""

from __future__ import annotations

import json
import re
import sys
from typing import Any, Final

import click
from scrapy.settings import Settings

from tres_scrapy.cli.command import INTERRUPTED, Command, Option, option, project_settings, refuse
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.parser import joined, seeds
from tres_scrapy.config.typed import option_of
from tres_scrapy.spiders.seeds import rate_seeds
from tres_scrapy.topic.seed_rating import advice, ranked, table

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
    type=click.IntRange(0),
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
