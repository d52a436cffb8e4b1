"""How options are read from Scrapy's settings, once per crawl."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from tres_scrapy.config.declaration import (
    PREFIX,
    ConfigError,
    Group,
    Setting,
    declared,
    suggestion,
)
from tres_scrapy.config.guest import places
from tres_scrapy.config.preset import preset_of

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


@dataclass(frozen=True)
class Options:
    """A frozen dataclass whose field `name` is read from the setting `prefix` + NAME."""

    prefix: ClassVar[str] = PREFIX
    group: ClassVar[Group] = Group.EVERYDAY

    @classmethod
    def declared(cls) -> dict[str, Setting]:
        """Return the settings of these options by name."""
        return {each.name: each for each in declared(cls, cls.prefix, cls.group)}

    @classmethod
    def of(cls, settings: BaseSettings) -> Self:
        """Return the options of a crawl: the same object until a setting of them changes.

        The spider or the add-on calls first, before Scrapy freezes the settings. The result is
        kept in the settings for all components. Without the add-on, each component parses again.
        """
        key = f"TRES.{cls.__name__}"
        given = cls._given(settings)
        kept: Kept | None = settings.get(key)
        if kept is None or kept.given != given:
            kept = Kept(given, cls.from_settings(settings))
            if not settings.frozen:
                settings.set(key, kept, "cmdline")
        assert isinstance(kept.options, cls)
        return kept.options

    @classmethod
    def _given(cls, settings: Mapping[Any, Any]) -> dict[str, str]:
        """Return the settings that are set, as text."""
        given = {name: settings.get(name) for name in cls.declared()}
        return {name: str(raw).strip() for name, raw in given.items() if raw is not None}

    @classmethod
    def from_settings(cls, settings: Mapping[Any, Any]) -> Self:
        """Parse the settings; raise ConfigError at the first wrong or unknown setting.

        A setting that is not set, or is empty, has the value of the preset if that has one.
        """
        known, given, preset = cls.declared(), cls._given(settings), preset_of(settings)
        prefixes = (*_prefixes(), PREFIX)
        for name in map(str, settings):
            longest = next((each for each in prefixes if name.startswith(each)), "")
            if longest == cls.prefix and name not in known:
                raise ConfigError(f"unknown setting {name}{suggestion(name, known)}")
        options: dict[str, Any] = {}
        for name, each in known.items():
            if text := given.get(name) or preset.get(name):
                *outer, field = each.place
                inside = options.setdefault(outer[0], {}) if outer else options
                inside[field] = each.read(text)
        for spec in fields(cls):
            if "part" in spec.metadata and spec.name in options:
                options[spec.name] = spec.metadata["part"](**options[spec.name])
        return cls(**options)

    def values(self) -> dict[str, Any]:
        """Return all values by the names of their settings."""
        return {name: reduce(getattr, each.place, self) for name, each in self.declared().items()}


def _prefixes() -> list[str]:
    """Return the prefixes of settings that only the spider of a guest reads and checks."""
    guests = (place.split(".")[1] for place in places("options"))
    return [f"{PREFIX}{guest.upper()}_" for guest in guests]


class Kept(NamedTuple):
    """Options in the settings of a crawl, and the texts that they were parsed from."""

    given: dict[str, str]
    options: Options


def apply_arguments(
    settings: BaseSettings, arguments: Mapping[str, Any], known: Iterable[Setting]
) -> dict[str, Any]:
    """Copy each spider argument to its setting; raise ConfigError if there is no such setting.

    Return the arguments that begin with _, in which Scrapyd passes its job and version.
    """
    names = {each.argument: each.name for each in known}
    scrapyds = {name: value for name, value in arguments.items() if name.startswith("_")}
    for name, value in arguments.items():
        if name in scrapyds:
            continue
        if name not in names:
            raise ConfigError(f"unknown argument -a {name}{suggestion(name, names)}")
        settings.set(names[name], value, priority="cmdline")
    return scrapyds
