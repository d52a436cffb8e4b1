"""What a setting is: a field of a class of options with its rule, default, meaning and group."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, Final

PREFIX: Final = "TRES_"
# Programs with settings of their own, which no other program checks.
PROGRAMS: Final = ("TRES_REFRESH_", "TRES_SURFACE_")
Place = tuple[str, ...]  # names of fields, from the outer options to the inner ones


class ConfigError(ValueError):
    """Says in one line which setting is wrong, its value, the rule and what to do."""


class Group(Enum):
    """What settings are for, as headings of their documentation."""

    EVERYDAY = "Everyday"
    SCOPE = "Limits"
    POLITENESS = "Politeness and safety"
    OUTPUT = "Output"
    WATCHING = "Watching a crawl"
    RENDERING = "Rendering"
    LEARNING = "Learning"
    RESEARCH = "Research"
    WEB = "Offline webs"
    SURFACE = "`scrapy crawl surface`"
    REFRESH = "`scrapy crawl refresh`"


@dataclass(frozen=True)
class Setting:
    """A setting by its name in a settings file."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    meaning: str
    group: Group
    place: Place

    @property
    def argument(self) -> str:
        """What it is called after -a."""
        return self.name.removeprefix("TRES_REFRESH_").removeprefix(PREFIX).lower()

    def read(self, text: str) -> Any:
        """Return the value of a text; raise ConfigError if it breaks the rule."""
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
    """Return a field that is read from a setting: `name`, else that of the field.

    Without a `group` the setting is in the one of its class.
    """
    about = {"parse": parse, "meaning": meaning, "name": name, "group": group}
    return field(default=default, metadata=about)


def part(owner: type[Any], group: Group) -> Any:
    """Return a field of options inside others."""
    return field(default_factory=owner, metadata={"part": owner, "group": group})


def declared(owner: type[Any], prefix: str, group: Group, place: Place = ()) -> Iterator[Setting]:
    """Yield the settings that a class of options is read from."""
    for spec in fields(owner):
        about, inner = spec.metadata, (*place, spec.name)
        if "part" in about:
            yield from declared(about["part"], prefix, about["group"], inner)
        elif about:
            name = prefix + (about["name"] or spec.name).upper()
            kind = about["group"] or group
            yield Setting(name, about["parse"], spec.default, about["meaning"], kind, inner)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what a misspelt name may have meant, as the end of a sentence."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
