"""Texts of the commands of `scrapy`, in the words of `tres`."""

from __future__ import annotations

import re

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import Setting
from tres_scrapy.config.parser import flag


def option_of(argument: str) -> str:
    """Return the option of `tres` that is the argument `-a` of `scrapy crawl`."""
    return f"--{argument.replace('_', '-')}"


def in_words_of_tres(text: str) -> str:
    """Replace the commands and arguments of `scrapy` in a text by those of `tres`."""
    text = re.sub(r"scrapy tres-(\w+)", r"tres \1", text)
    text = re.sub(r"scrapy crawl (?:tres\b)?", _crawl, text)
    text = re.sub(r"TRES_\w+ \(-a (\w+)=\)", lambda found: option_of(found[1]), text)
    text = re.sub(r"-s TRES_(\w+=[01])\b", lambda found: f"-a {found[1].lower()}", text)
    text = re.sub(r" \(see [\w-]+\.md\)", "", text)  # who has the program need not have docs/
    return re.sub(r"-a (\w+)=(\S*)", _argument, text)


def _crawl(found: re.Match[str]) -> str:
    return "tres crawl" if found[0].endswith("tres") else "tres "


def _argument(found: re.Match[str]) -> str:
    name, value = found.groups()
    setting = Config.declared().get(f"TRES_{name.upper()}")
    if setting is not None and is_switch(setting) and value in {"0", "1"}:
        return option_of(name if value == "1" else f"no_{name}")
    return f"{option_of(name)} {value}".rstrip()


def is_switch(setting: Setting) -> bool:
    """Return whether a setting is on or off: --NAME or --no-NAME."""
    return setting.parse is flag
