"""The command line of `tres`: the commands and the spiders of this package, in any folder."""

from __future__ import annotations

import argparse
import logging
import os
import re
import shlex
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from textwrap import fill
from typing import Any

from scrapy.cmdline import execute
from scrapy.exceptions import UsageError
from scrapy.utils.project import ENVVAR, get_project_settings

from tres_scrapy.commands import calling
from tres_scrapy.config.declaration import ConfigError, closest, suggestion
from tres_scrapy.config.parser import names_site
from tres_scrapy.console.cluster_line import run_cluster
from tres_scrapy.console.overview import COMMANDS, overview
from tres_scrapy.console.spider_option import SPIDERS, LineParser, refuse_unknown
from tres_scrapy.console.wording import in_words_of_tres
from tres_scrapy.topic.shipped import topics

INTERRUPTED = 130


def run_line(*words: str) -> None:
    """Run the command that the words of a command line name, with the settings of this package."""
    os.environ.setdefault(ENVVAR, "tres_scrapy.settings")  # whatever scrapy.cfg lies around
    logging.setLogRecordFactory(_record)
    try:
        _run(*words)
    except SystemExit as end:
        if isinstance(end.code, str):
            sys.exit(in_words_of_tres(end.code))
        raise
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run(name: str = "", *given: str) -> None:
    if name == "help" and given:
        name, given = given[0], ("--help",)
    if name in {"", "help", "-h", "--help"}:
        print(overview())
    elif name == "--version":
        print(f"tres {_version()}")
    elif name in SPIDERS:
        try:
            arguments = SPIDERS[name].arguments(name, given)
        except ConfigError as error:
            sys.exit(f"tres {name}: {error}")
        execute(["tres", *arguments])
    elif name == "cluster":
        sys.exit(run_cluster(given))
    elif name in COMMANDS:
        _run_command(name, given)
    else:
        sys.exit(f"tres: {_refusal(name, given)}")


def _refusal(name: str, given: Sequence[str]) -> str:
    """Return what is wrong with a line whose first word is not a command, and what may be meant."""
    if name.startswith(("http://", "https://", "@")) or names_site(name):
        meant = shlex.join(["crawl", "TOPIC", name, *given])
        return f"a topic must stand before the URL; did you mean `tres {meant}`?"
    kind, known = "is a topic, not a command", topics()
    topic = name if set(re.split("[,+]", name)) <= set(known) else ""
    if not topic and closest(name, COMMANDS) is None:
        kind, topic = "is not a command", closest(name, known) or ""
    if topic:
        meant = shlex.join(["crawl", topic, *(given or ["URL"])])
        return f"{name!r} {kind}; did you mean `tres {meant}`?"
    hint = suggestion(name, COMMANDS) or "."
    return f"unknown command {name!r}{hint} The commands are {', '.join(COMMANDS)}"


def _run_command(name: str, given: Sequence[str]) -> None:
    """Run a command of `scrapy` that does not crawl, as Scrapy would, and end the program."""
    calling.PREFIX = "tres "
    command = import_module(f"tres_scrapy.commands.tres-{name}").Command()
    parser = LineParser(
        prog=f"tres {name}",
        usage=f"tres {name} {command.syntax()}",
        conflict_handler="resolve",
        allow_abbrev=False,
    )
    command.settings = get_project_settings()
    command.settings.setdict(command.default_settings, priority="command")
    command.add_options(parser)
    _hide_scrapys(parser)
    said = command.long_desc()
    parser.description = in_words_of_tres(said if "\n" in said else fill(said))
    parser.epilog = in_words_of_tres(parser.epilog or "")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    options, free = parser.parse_known_args(given)
    refuse_unknown(parser, free)
    try:
        command.process_options(free, options)
        command.run(free, options)
    except UsageError as error:
        parser.error(in_words_of_tres(str(error)))
    sys.exit(command.exitcode)


def _record(*values: Any, **more: Any) -> logging.LogRecord:
    """Make the record of a log message; ours name options as they are typed here."""
    record = logging.LogRecord(*values, **more)
    if record.name.startswith("tres_scrapy."):
        record.msg, record.args = in_words_of_tres(record.getMessage()), None
    return record


def _hide_scrapys(parser: argparse.ArgumentParser) -> None:
    """Hide the options that Scrapy gives to all its commands; they work."""
    for group in parser._action_groups:
        if group.title == "Global Options":
            for action in group._group_actions:
                action.help = argparse.SUPPRESS


def _version() -> str:
    try:
        return version("tres-scrapy")
    except PackageNotFoundError:
        return "(not installed)"
