"""How a setting is declared: a dataclass field with a parser, default, meaning and group."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final

from tres_scrapy.url.message import TresError

PREFIX: Final = "TRES_"
# Prefixes of settings that only one spider reads and checks.
PROGRAMS: Final = ("TRES_REFRESH_", "TRES_SURFACE_")
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
    SURFACE = "`scrapy crawl surface`"
    REFRESH = "`scrapy crawl refresh`"


@dataclass(frozen=True)
class Setting:
    """One setting; `name` is its full name, as in a settings file."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    meaning: str
    group: Group
    place: Place

    @property
    def argument(self) -> str:
        """The name of the setting after -a."""
        return self.name.removeprefix("TRES_REFRESH_").removeprefix(PREFIX).lower()

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
            raise ConfigError(f"{self.name} (-a {self.argument}=) {text!r}: {error}") from None


def setting(
    parse: Callable[[str], Any],
    default: Any,
    meaning: str,
    *,
    name: str = "",
    group: Group | None = None,
) -> Any:
    """Return a dataclass field read from the setting `name` (default: the name of the field).

    Without a `group`, the setting is in the group of its class.
    """
    about = {"parse": parse, "meaning": meaning, "name": name, "group": group}
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
            kind = about["group"] or group
            yield Setting(name, about["parse"], spec.default, about["meaning"], kind, inner)


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a name, None if none is like it."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1)), None)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "; did you mean ...?" with the closest known name, or ""."""
    close = closest(name, known)
    return "" if close is None else f"; did you mean {close}?"
