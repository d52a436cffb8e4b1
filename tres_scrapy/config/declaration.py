"""How a setting is declared: a dataclass field with a parser, default, meaning and group."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from pathlib import Path
from typing import Any, Final

from tres_scrapy.config.parser import flag
from tres_scrapy.config.typed import argument_of, named
from tres_scrapy.url.message import TresError

PREFIX: Final = "TRES_"
ALIKE: Final = 0.81  # of two names: one letter of four differs at most
Place = tuple[str, ...]  # field names, from the outer options to the inner ones


class ConfigError(TresError):
    """An error in one line: which setting is wrong, its value, the rule and what to do."""


class Group(Enum):
    """The groups of settings; the values are headings in docs/settings.md."""

    EVERYDAY = "Everyday"
    SCOPE = "Scope and limits"
    POLITENESS = "Politeness and safety"
    OUTPUT = "Output, report and live page"
    RENDERING = "Rendering"
    LEARNING = "Learning"
    RESEARCH = "Research"
    WEB = "Offline webs"
    CLUSTER = "One crawl on many machines"
    SURFACE = "Surface"
    REFRESH = "Refresh"


@dataclass(frozen=True)
class Setting:
    """One setting; `name` is its full name, as in a settings file, `see` a page of docs/."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    meaning: str
    group: Group
    place: Place
    see: str = ""

    @property
    def argument(self) -> str:
        """The name of the setting after -a."""
        return argument_of(self.name)

    @property
    def is_switch(self) -> bool:
        """Whether the setting is on or off: `--name` or `--no-name`."""
        return self.parse is flag

    @property
    def help(self) -> str:
        """The meaning of the setting, its choices and its default, for the program `tres`."""
        meaning, default = self.meaning, self.default
        if self.rule.startswith("one of "):
            meaning += f": {self.rule.removeprefix('one of ')}"
        if default is None or default == ():
            return meaning
        if self.is_switch:
            default = "yes" if default else "no"
        elif isinstance(default, tuple):
            default = ",".join(default)
        return f"{meaning} (default: {default})"

    @property
    def value_name(self) -> str:
        """The name of the value in the help of `tres`, such as PATH."""
        if self.parse is Path:
            return "PATH"
        return "N" if "number" in self.rule else self.argument.rpartition("_")[2].upper()

    @property
    def rule(self) -> str:
        """The rule that the parser names when it refuses a value, or ""."""
        try:
            self.parse("\0")
        except ValueError as error:
            said, _, _ = str(error).partition(r", '\x00'")
            return said.removeprefix("must ").removeprefix("be ").removeprefix("hold ")
        return ""

    def read(self, text: str) -> Any:
        """Parse a text and return the value; raise ConfigError if the text is not valid."""
        try:
            return self.parse(text)
        except ValueError as error:
            raise ConfigError(f"{named(self.name)} {text!r}: {error}") from None


def setting(
    parse: Callable[[str], Any],
    default: Any,
    meaning: str,
    *,
    name: str = "",
    group: Group | None = None,
    see: str = "",
) -> Any:
    """Return a dataclass field read from the setting `name` (default: the name of the field).

    Without a `group`, the setting is in the group of its class. `see` is a page of docs/.
    """
    about = {"parse": parse, "meaning": meaning, "name": name, "group": group, "see": see}
    return field(default=default, metadata=about)


def part(owner: type[Any], group: Group) -> Any:
    """Return a dataclass field that holds options of the class `owner`."""
    return field(default_factory=owner, metadata={"part": owner, "group": group})


def declared(owner: type[Any], prefix: str, group: Group, place: Place = ()) -> Iterator[Setting]:
    """Yield the settings of a class of options and of the options inside it."""
    for spec in fields(owner):
        about, inner = spec.metadata, (*place, spec.name)
        if "part" in about:
            yield from declared(about["part"], prefix, about["group"], inner)
        elif about:
            name = prefix + (about["name"] or spec.name).upper()
            own: dict[str, Any] = {"name": name, "group": about["group"] or group}
            yield Setting(**about | own, default=spec.default, place=inner)


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a name, None if none is like it.

    Of settings and options, the names after the prefix are compared.
    """
    bare = {argument_of(each.removeprefix("--")): each for each in known}
    wanted = argument_of(name.removeprefix("--"))
    return next((bare[each] for each in difflib.get_close_matches(wanted, bare, 1, ALIKE)), None)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the closest known name, or ""."""
    close = closest(name, known)
    return "" if close is None else f"; did you mean {close}?"
