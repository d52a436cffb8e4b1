"""Commands on click: loaded when they are asked for, with errors in one line."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

import click
from click.core import augment_usage_errors

from tres_scrapy.cli.main import commands, overview
from tres_scrapy.config.declaration import Setting, closest, suggestion
from tres_scrapy.config.parser import names_site
from tres_scrapy.config.typed import option_of, speak_of
from tres_scrapy.topic.shipped import topics
from tres_scrapy.url.message import TresError, first_line, plainly

if TYPE_CHECKING:
    from scrapy.settings import Settings

INTERRUPTED: Final = 130
HELP_ALL: Final = "--help-all"
PROJECT: Final = "SCRAPY_SETTINGS_MODULE"


def run_line(*words: str, script: click.Command | None = None) -> NoReturn:
    """Run the command that the words of a command line name, or a `script`, and end the program."""
    os.environ.setdefault(PROJECT, "tres_scrapy.settings")  # whatever scrapy.cfg lies around
    try:
        program, name = (tres, "tres") if script is None else (script, str(script.name))
        sys.exit(program.main(words, name, standalone_mode=False) or 0)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else name
        print(f"{path}: {_said(error)}; see {path} --help", file=sys.stderr)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # while a command was loaded
        sys.exit(INTERRUPTED)


class Option(click.Option):
    """An option of a command, under the heading `group` of its help.

    One with `many` takes all words up to the next option, as in `--max none 10`; if it
    `may_be_bare` and has none, its only value is "". One that is `seldom` needed is shown by
    --help-all alone. `setting` is the setting that it sets, if any.
    """

    def __init__(
        self,
        names: Sequence[str],
        *,
        group: str = "Options",
        many: bool = False,
        may_be_bare: bool = False,
        seldom: bool = False,
        setting: Setting | None = None,
        multiple: bool = False,
        **more: Any,
    ) -> None:
        self.group, self.setting, self.seldom = group, setting, seldom
        self.many, self.may_be_bare = many, may_be_bare
        super().__init__(names, multiple=many or multiple, **more)

    @classmethod
    def of(cls, setting: Setting, group: str = "Options", *, seldom: bool = False) -> Option:
        """Return the option that is a setting."""
        name, names = option_of(setting.argument), ["-o"] * (setting.name == "TRES_OUTPUT")
        more: dict[str, Any] = {"metavar": setting.value_name}
        if setting.is_switch:
            name, more = f"{name}/{name.replace('--', '--no-', 1)}", {"default": None}
        return cls(
            [*names, name, setting.argument],
            group=group,
            setting=setting,
            help=setting.help,
            seldom=seldom,
            **more,
        )


option = partial(click.option, cls=Option)
Decorator = Callable[[Any], Any]


class Command(click.Command):
    """A command of `tres`, with the settings of Scrapy that all commands take: `-s`, `-L`."""

    expected: ClassVar[tuple[type[Exception], ...]] = (OSError, TresError)

    def __init__(self, *arguments: Any, syntax: str = "", **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.syntax = syntax
        self.params += self.scrapys()

    def scrapys(self) -> list[click.Parameter]:
        """Return the options of Scrapy's that the command takes beside its own."""
        keep: dict[str, Any] = {"expose_value": False, "hidden": True, "callback": _keep}
        return [
            Option(["-s", "--set"], multiple=True, **keep),
            Option(["-L", "--loglevel"], **keep),
            Option(["--logfile"], **keep),
            Option(["--pidfile"], **keep),
            Option(["--nolog"], is_flag=True, **keep),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = [each for each in self.params if isinstance(each, Option)]
        speak_of({each.setting.argument for each in own if each.setting is not None})
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, _spread(own, args))

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, TextIOWrapper):  # the terminal may not show titles in any script
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with augment_usage_errors(ctx):
                return super().invoke(ctx)
        except BrokenPipeError:  # the reader of the pipe, such as head, has stopped
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except self.expected as error:
            sys.exit(f"{ctx.command_path}: {plainly(error)}")
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [self.syntax] if self.syntax else []

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if getattr(each, "seldom", False) and HELP_ALL not in ctx.meta:
                continue
            if record is not None and isinstance(each, click.Option):
                groups.setdefault(getattr(each, "group", "Options"), []).append(record)
        for title in sorted(groups, key="Options".__eq__):  # those of every command at the end
            with formatter.section(title):
                formatter.write_dl(groups[title])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.epilog:
            formatter.write(f"\n{self.epilog.rstrip()}\n")


class Program(click.Group):
    """The program `tres`; the file of a command is imported when the command is asked for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return commands()

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in commands():
            return None
        try:
            command: click.Command = import_module(f"tres_scrapy.cli.{name}").command
        except (ImportError, OSError) as error:
            sys.exit(f"tres: {first_line(error)}: run `tres doctor`")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in commands():
            sys.exit(f"tres: {_refusal(*args)}")
        return super().resolve_command(ctx, args)

    def get_help(self, ctx: click.Context) -> str:
        return overview()


@click.group(
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True)
@click.pass_context
def tres(ctx: click.Context, version: bool) -> None:
    """Run a command; without one, print the overview."""
    if version:
        print(f"tres {_version()}")
        ctx.exit()
    if ctx.invoked_subcommand is None:
        print(overview())


def refuse(wanted: str, words: Sequence[str]) -> NoReturn:
    """End the program with a line that says what to give, and what was given instead."""
    raise click.UsageError(f"give {wanted}, not {' '.join(map(repr, words)) or 'nothing'}")


def record_of(run: Sequence[str | Path]) -> Path:
    """Return the record of the RUN given; without one that of the latest crawl, which is named."""
    from tres_scrapy.report.record_path import find_record, latest_record  # noqa: PLC0415

    if len(run) > 1:
        refuse("one RUN or none", [*map(str, run)])
    if run:
        return find_record(Path(run[0]))
    path = latest_record()
    print(f"The latest crawl: {path}", file=sys.stderr)
    return path


def given_settings() -> dict[str, str]:
    """Return the settings of `-s NAME=VALUE`."""
    return pairs_of(_given().get("set", ()))


def pairs_of(texts: Sequence[str], option: str = "-s") -> dict[str, str]:
    """Return names and values of `NAME=VALUE`; raise a UsageError at another text."""
    for text in texts:
        if "=" not in text:
            raise click.UsageError(f"{option} {text!r} must be NAME=VALUE")
    return dict(text.split("=", 1) for text in texts)


def project_settings() -> Settings:
    """Return the settings of this package with those that the command line sets."""
    from scrapy.utils.project import get_project_settings  # noqa: PLC0415 - it takes a while

    from tres_scrapy.spiders.crawl import check_scrapys  # noqa: PLC0415

    settings, given = get_project_settings(), _given()
    settings.setdict(given_settings(), "cmdline")
    if given.get("logfile"):
        settings.set("LOG_FILE", given["logfile"], "cmdline")
        settings.set("LOG_ENABLED", True, "cmdline")
    if given.get("loglevel"):
        settings.set("LOG_LEVEL", given["loglevel"], "cmdline")
    if given.get("nolog"):
        settings.set("LOG_ENABLED", False, "cmdline")
    if given.get("pidfile"):
        with open(given["pidfile"], "w", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")
    check_scrapys(settings)
    return settings


def _given() -> dict[str, Any]:
    """Return the values of Scrapy's options in this command line."""
    given: dict[str, Any] = click.get_current_context().meta
    return given


def _keep(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    ctx.meta[str(parameter.name)] = value


def _spread(options: Sequence[Option], args: Sequence[str]) -> list[str]:
    """Return a command line in which an option of many values stands before each of them.

    Raise a UsageError if an option lacks its value, or a switch has one.
    """
    named = {name: each for each in options for name in (*each.opts, *each.secondary_opts)}
    spread: list[str] = []
    many = ""
    for word, after in zip(args, [*args[1:], None], strict=False):
        if word == "--":
            return spread + list(args[args.index(word) :])
        option = named.get(word)
        if option is None:
            spread += [many, word] if many and not word.startswith("-") else [word]
            many = many if not word.startswith("-") else ""
            continue
        has_value = after is not None and after not in named and not re.match(r"--?[a-z]", after)
        if option.secondary_opts and after in {"0", "1"}:
            right = option.opts[-1] if after == "1" else option.secondary_opts[-1]
            raise click.UsageError(f"{word} takes no value: write {right}")
        if option.may_be_bare and not has_value:
            spread += [word, ""]
        elif not option.is_flag and not has_value:
            raise click.UsageError(f"{word} needs a value")
        else:
            many = word if option.many else ""
            spread += [] if many else [word]
    return spread


def _said(error: click.UsageError) -> str:
    """Return what is wrong with a command line, in one line."""
    if isinstance(error, click.NoSuchOption):
        name = error.option_name.partition("=")[0]
        options = error.ctx.command.params if error.ctx is not None else []
        known = [each for option in options for each in (*option.opts, *option.secondary_opts)]
        long = [each for each in known if each.startswith("--")]
        return f"unknown option {name}{suggestion(name.replace('_', '-'), long)}"
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{error.param.opts[0]} is missing"
    said = error.format_message().removesuffix(".")
    return said[:1].lower() + said[1:]


def _refusal(name: str, *given: str) -> str:
    """Return what is wrong with a line whose first word is not a command, and what may be meant."""
    if name.startswith("-"):
        return f"unknown option {name}; run `tres` for the list of commands"
    if name.startswith(("http://", "https://", "@")) or names_site(name):
        meant = shlex.join(["crawl", "TOPIC", name, *given])
        return f"a topic must stand before the URL; did you mean `tres {meant}`?"
    kind, known = "is a topic, not a command", topics()
    topic = name if set(re.split("[,+]", name)) <= set(known) else ""
    if not topic and closest(name, commands()) is None:
        kind, topic = "is not a command", closest(name, known) or ""
    if topic:
        meant = shlex.join(["crawl", topic, *(given or ["URL"])])
        return f"{name!r} {kind}; did you mean `tres {meant}`?"
    hint = suggestion(name, commands()) or "."
    return f"unknown command {name!r}{hint} The commands are {', '.join(commands())}"


def _version() -> str:
    try:
        return version("tres-scrapy")
    except PackageNotFoundError:
        return "(not installed)"
