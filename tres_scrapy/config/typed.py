"""What the user types for a setting, for messages: an option of `tres`, or -a or -s of Scrapy."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

PREFIX: Final = "TRES_"
SPIDERS: Final = {"tres": "crawl"}  # spiders whose command of `tres` has another name


class _Line:
    """The command line of this process."""

    options: Collection[str] | None = None  # arguments that are options of `tres`; None: of Scrapy


def speak_of(options: Collection[str] | None) -> None:
    """Name settings from now on as `options` of `tres`; None: as arguments of `scrapy crawl`.

    None of them, (): as settings of Scrapy, for a spider that takes no arguments of ours.
    """
    _Line.options = options


def typed(name: str, value: object = "") -> str:
    """Return what gives the argument `name` a value; a bool is that of a switch."""
    if _Line.options is not None:
        return typed_setting(name, value)
    return f"-a {name}={value_text(value)}"


def typed_setting(name: str, value: object = "") -> str:
    """Return the same for a setting that spiders without arguments of ours have too."""
    if name not in (_Line.options or ()):
        return f"-s {PREFIX}{name.upper()}={value_text(value)}"
    if isinstance(value, bool):
        return option_of(name if value else f"no_{name}")
    return f"{option_of(name)} {value}".rstrip()


def named(setting: str) -> str:
    """Return the name of a setting for a message about its value, with what the user types."""
    name = argument_of(setting)
    if _Line.options is None:
        return f"{setting} (-a {name}=)"
    return option_of(name) if name in _Line.options else setting


def argument_of(setting: str) -> str:
    """Return the name after -a of a setting such as TRES_PAGES or TRES_REFRESH_BUDGET."""
    return setting.removeprefix("TRES_REFRESH_").removeprefix(PREFIX).lower()


def option_of(name: str) -> str:
    """Return the option of `tres` that is the argument `-a name=` of `scrapy crawl`."""
    return f"--{name.replace('_', '-')}"


def crawl_of(spider: str) -> str:
    """Return the command that runs a spider."""
    return f"tres {SPIDERS.get(spider, spider)}" if _Line.options else f"scrapy crawl {spider}"


def value_text(value: object) -> str:
    """Return a value as the text of a setting."""
    return str(int(value)) if isinstance(value, bool) else str(value)
