"""The options of `tres crawl`, `surface` and `refresh`: every setting of their spiders."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import Group, Setting, suggestion
from tres_scrapy.config.parser import joined
from tres_scrapy.console.wording import in_words_of_tres, is_switch, option_of
from tres_scrapy.surface.settings import SurfaceOptions

MORE: Final = "--help-all"
SELDOM: Final = (Group.LEARNING, Group.RESEARCH, Group.WEB, Group.CLUSTER)  # only in --help-all
CRAWL_EXAMPLES: Final = """\
Examples:
  tres crawl food --web synthetic --pages 1000 --max-per-domain 10     needs no network
  tres crawl food https://example.org/recipes --pages 20000 --max-per-domain 10
  tres crawl --keywords tea.txt https://example.org/tea     a new topic, without a pack
  tres crawl food @seeds.txt --jobdir jobs/food --dashboard 1          the same line resumes it
  tres crawl food https://example.org/ --output food.jsonl --csv -s DOWNLOAD_DELAY=3
"""
SURFACE_EXAMPLES: Final = """\
Examples:
  tres surface food https://example.org/search --surface-queries 50
  tres surface food --web deep --pages 300                             needs no network
"""
REFRESH_EXAMPLES: Final = """\
Examples:
  tres refresh output/food.jsonl --budget 1000
  tres refresh output/food.jsonl --budget 1000 --horizon 1d --watch
"""


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


@dataclass(frozen=True)
class SpiderCommand:
    """A command of `tres` that runs a spider; its `places` are arguments without a name.

    Arguments after the last place join it, with commas between.
    """

    spider: str
    places: tuple[str, ...]
    syntax: str
    description: str
    examples: str
    settings: Callable[[], list[Setting]]

    def arguments(self, name: str, given: Sequence[str]) -> list[str]:
        """Return the arguments of `scrapy` for those of `tres name`.

        End the program if an option is unknown; raise ConfigError if a value is wrong.
        """
        parser = self._parser(name, everything=MORE in given)
        if MORE in given:
            parser.print_help()
            parser.exit()
        options, free = parser.parse_known_args(given)
        known = {each.argument: each for each in self.settings()}
        refuse_unknown(parser, free)
        self._refuse_values(parser, given)
        values = {each: getattr(options, each) for each in known}
        chosen = {each: _text(value) for each, value in values.items() if value is not None}
        places = self.places
        if "keywords" in chosen and free and not re.fullmatch(r"[\w,+-]+", free[0]):
            places = places[1:]  # the topic is named after its file of keywords
        for place, value in _placed(places, free).items():
            if place in chosen:
                parser.error(f"{value!r} and {option_of(place)}: give only one of them")
            chosen[place] = value
        words = ["crawl", self.spider, "-s", f"{STATS}=0"]  # a later -s wins
        if _shows_stats(options.passed):
            words = words[:2]
        for argument, value in chosen.items():
            known[argument].read(value)  # at once, before anything slow is loaded
            words += ["-a", f"{argument}={value}"]
        return [*words, *options.passed]

    def _refuse_values(self, parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
        """End the program at `--csv 1`: a switch takes no value."""
        switches = {option_of(each.argument) for each in self.settings() if is_switch(each)}
        for option, value in pairwise(given):
            if option in switches and value in {"0", "1"}:
                right = option if value == "1" else option.replace("--", "--no-", 1)
                parser.error(f"{option} takes no value: write {right}")

    def _parser(self, name: str, *, everything: bool) -> argparse.ArgumentParser:
        parser = LineParser(
            prog=f"tres {name}",
            usage=f"tres {name} {self.syntax} [options]",
            description=self.description,
            epilog=self.examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        titles = {group: in_words_of_tres(group.value).strip("`") for group in Group}
        groups = {group: parser.add_argument_group(title) for group, title in titles.items()}
        for each in self.settings():
            _add(groups[each.group], each, hidden=each.group in SELDOM and not everything)
        scrapys = parser.add_argument_group("Scrapy's own")
        for names, metavar, meaning in SCRAPYS:
            scrapys.add_argument(
                *names, action=_Pass, default=[], dest="passed", metavar=metavar, help=meaning
            )
        scrapys.add_argument(
            MORE, action="store_true", help="show also the options of learning and research"
        )
        return parser


def _refresh_settings() -> list[Setting]:
    from tres_scrapy.refresh.settings import RefreshConfig  # noqa: PLC0415 - it loads PyTorch

    return RefreshConfig.arguments()


SPIDERS: Final = {
    "crawl": SpiderCommand(
        "tres",
        ("topic", "seed"),
        "TOPIC | --keywords FILE [URL | @FILE]...",
        "Collect the pages of a topic. TOPIC is a topic pack: `tres` alone lists them. The crawl\n"
        "starts at the URLs, or at those in a file, and writes to output/ in this folder.",
        CRAWL_EXAMPLES,
        lambda: [*Config.declared().values()],
    ),
    "surface": SpiderCommand(
        "surface",
        ("topic", "seed"),
        "TOPIC [URL | @FILE]...",
        "Find the records behind the search boxes of sites, and crawl on from there.",
        SURFACE_EXAMPLES,
        lambda: [*SurfaceOptions.declared().values(), *Config.declared().values()],
    ),
    "refresh": SpiderCommand(
        "refresh",
        ("collection",),
        "COLLECTION",
        "Visit the pages of a finished crawl again and report what has changed. COLLECTION is its\n"
        "JSON lines file, or any other with a url on each line.",
        REFRESH_EXAMPLES,
        _refresh_settings,
    ),
}


class LineParser(argparse.ArgumentParser):
    """A parser that reports an error in one line."""

    def error(self, message: str) -> NoReturn:
        """End the program with a line that says what is wrong."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def refuse_unknown(parser: argparse.ArgumentParser, free: Sequence[str]) -> None:
    """End the program if an argument that the parser left over looks like an option."""
    for text in free:
        if text.startswith("-") and text != "-":
            option = text.partition("=")[0]
            known = [each for each in parser._option_string_actions if each.startswith("--")]
            parser.error(f"unknown option {option}{suggestion(option.replace('_', '-'), known)}")


class _Pass(argparse.Action):
    """Keeps an option and its value for Scrapy."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option: str | None = None,
    ) -> None:
        words = ["-s", f"JOBDIR={values}"] if option == "--jobdir" else [option, values]
        namespace.passed = [*namespace.passed, *words]


def _shows_stats(passed: Sequence[str]) -> bool:
    """Return whether Scrapy's stats end the log: in a file, with a log level, or if asked for."""
    return bool({"--logfile", "--loglevel", "-L"}.intersection(passed)) or any(
        each.startswith((f"{STATS}=", "LOG_FILE=")) for each in passed
    )


def _placed(places: Sequence[str], free: list[str]) -> dict[str, str]:
    """Return the arguments without a name by their places; the last place takes all others."""
    first, last = free[: len(places) - 1], free[len(places) - 1 :]
    values = [*first, joined(last)] if last else first
    return dict(zip(places, values, strict=False))


def _add(group: Any, each: Setting, *, hidden: bool) -> None:
    """Add the option of a setting to a group of a parser."""
    about = argparse.SUPPRESS if hidden else _help(each)
    names = ["-o"] * (each.name == "TRES_OUTPUT") + [option_of(each.argument)]
    if is_switch(each):
        action = argparse.BooleanOptionalAction
        group.add_argument(*names, dest=each.argument, action=action, default=None, help=about)
    else:
        group.add_argument(*names, dest=each.argument, metavar=_metavar(each), help=about)


def _help(each: Setting) -> str:
    meaning = in_words_of_tres(each.meaning).replace("%", "%%")
    if each.rule.startswith("one of "):
        meaning += f": {each.rule.removeprefix('one of ')}"
    if each.default is None or each.default == ():
        return meaning
    if is_switch(each):
        return f"{meaning} (default: {'yes' if each.default else 'no'})"
    default = ",".join(each.default) if isinstance(each.default, tuple) else each.default
    return f"{meaning} (default: {default})"


def _metavar(each: Setting) -> str:
    if each.parse is Path:
        return "PATH"
    return "N" if "number" in each.rule else each.argument.rpartition("_")[2].upper()


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)
