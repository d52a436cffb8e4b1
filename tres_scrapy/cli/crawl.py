"""`tres crawl`, and how a command becomes one of `scrapy crawl`: its options are all settings."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from scrapy.cmdline import execute

from tres_scrapy.cli.command import HELP_ALL, Command, Option, pairs_of
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import Group, Setting
from tres_scrapy.config.parser import joined
from tres_scrapy.config.typed import option_of, value_text
from tres_scrapy.spiders.tres import TresSpider
from tres_scrapy.url.message import TresError

SELDOM: Final = (Group.LEARNING, Group.RESEARCH, Group.WEB, Group.CLUSTER)  # only in --help-all
SCRAPYS: Final = (  # names, metavar and meaning of options that are passed on
    (("--jobdir",), "DIR", "keep the state of the crawl here; the same command resumes it"),
    (("-s", "--set"), "NAME=VALUE", "set a setting of Scrapy"),
    (("-a",), "NAME=VALUE", "set an argument as in `scrapy crawl`"),
    (("-O", "--overwrite-output"), "FILE", "write the items to a feed of Scrapy too"),
    (("-L", "--loglevel"), "LEVEL", "log level; INFO shows also what Scrapy has loaded, its stats"),
    (("--logfile",), "FILE", "file of the log instead of the terminal"),
    (("--pidfile",), "FILE", "file for the number of the process"),
)
STATS: Final = "STATS_DUMP"
EXAMPLES: Final = """\
Examples:
  tres crawl food --web synthetic --pages 1000 --max-per-domain 10     needs no network
  tres crawl food https://example.org/recipes --pages 1000 --max-per-domain 10
  tres crawl --keywords tea.txt https://example.org/tea --pages 1000      a new topic, no pack
  tres crawl food @seeds.txt --contact you@example.org --jobdir jobs/food   again: resumes it
  tres crawl food https://example.org/ --pages 1000 --csv -s DOWNLOAD_DELAY=3
"""


class SpiderCommand(Command):
    """A command that runs a spider; its `places` are arguments without a name.

    Words after the last place join it, with commas between. `run` takes the arguments and the
    settings of the crawl, and the values of the `more` options.
    """

    expected = (TresError,)

    def __init__(
        self,
        name: str,
        places: Sequence[str],
        settings: Sequence[Setting],
        run: Callable[..., int | None],
        more: Sequence[click.Parameter] = (),
        **about: Any,
    ) -> None:
        own = [
            Option.of(each, each.group.value, seldom=each.group in SELDOM)
            for each in sorted(settings, key=lambda each: [*Group].index(each.group))
        ]
        words = click.Argument(["words"], nargs=-1)
        super().__init__(name, params=[words, *more, *own], callback=self._run, **about)
        self.places, self.settings, self.run = places, settings, run

    def scrapys(self) -> list[click.Parameter]:
        about = "show also the options of learning and research"
        keep: dict[str, Any] = {"group": "Scrapy's own", "multiple": True}
        return [
            *(Option([*names], metavar=value, help=said, **keep) for names, value, said in SCRAPYS),
            click.Option(
                [HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_help_all,
                help=about,
            ),
        ]

    def _run(self, words: Sequence[str], **given: Any) -> int | None:
        """Read each value at once, before anything slow is loaded, and run the spider."""
        known = {each.argument: each for each in self.settings}
        values = {name: given.pop(name) for name in known}
        chosen = {name: value_text(value) for name, value in values.items() if value is not None}
        places = self.places
        if "keywords" in chosen and words and not re.fullmatch(r"[\w,+-]+", words[0]):
            places = places[1:]  # the topic is named after its file of keywords
        for place, value in _placed(places, words).items():
            if place in chosen:
                raise click.UsageError(f"{value!r} and {option_of(place)}: give only one of them")
            chosen[place] = value
        for name, value in chosen.items():
            known[name].read(value)
        return self.run(chosen | pairs_of(given.pop("a", ()), "-a"), **given)


def run_spider(spider: str) -> Callable[..., None]:
    """Return what runs a spider as `scrapy crawl` does, and ends the program."""

    def run(arguments: dict[str, str], jobdir: Sequence[str], **passed: Sequence[str]) -> None:
        settings = pairs_of(passed.pop("set"))
        if jobdir:
            settings["JOBDIR"] = jobdir[-1]
        if not (passed["logfile"] or passed["loglevel"] or "LOG_FILE" in settings):
            settings.setdefault(STATS, "0")
        words = [f"--{name.replace('_', '-')}={each}" for name in passed for each in passed[name]]
        words += [part for name, value in arguments.items() for part in ("-a", f"{name}={value}")]
        words += [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
        execute(["tres", "crawl", spider, *words])

    return run


def _help_all(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[HELP_ALL] = True
        print(ctx.get_help())
        ctx.exit()


def _placed(places: Sequence[str], words: Sequence[str]) -> dict[str, str]:
    """Return the arguments without a name by their places; the last place takes all others."""
    first, last = words[: len(places) - 1], words[len(places) - 1 :]
    return dict(zip(places, [*first, joined(last)] if last else first, strict=False))


command = SpiderCommand(
    "crawl",
    ("topic", "seed"),
    [*Config.declared().values()],
    run_spider(TresSpider.name),
    syntax="TOPIC | --keywords FILE [URL | @FILE]... [options]",
    help="Collect the pages of a topic. TOPIC is a topic pack: `tres` alone lists them. The crawl "
    "starts at the URLs, or at those in a file, and writes to output/ in this folder.",
    epilog=EXAMPLES,
)
