"""Writes docs/settings.md from the code: `python docs/settings.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from tres_scrapy import settings as project
from tres_scrapy.config.config import PREFIX, Config

HEAD = """# Settings

`-a name=value`, `-s TRES_NAME=value` and `TRES_NAME = value` in a settings file mean the same; of a
name that is misspelt or a value that breaks its rule, one line tells, and the exit status is 1.

| `-a` | default | rule | meaning |
|---|---|---|---|
"""
SCRAPYS = """
## Scrapy's own

All of [Scrapy's settings](https://docs.scrapy.org/en/latest/topics/settings.html) work as they do
elsewhere. The project sets these; `-s NAME=value` overrides them, and a project of your own that
uses the add-on has its own.

| setting | here |
|---|---|
"""


def page() -> str:
    """Return the page."""
    lines = [_row(spec.name, spec.default, spec.metadata) for spec in fields(Config)]
    scrapys = [
        f"| `{name}` | {_code(value)} |"
        for name, value in vars(project).items()
        if name.isupper() and name not in {"SPIDER_MODULES", "COMMANDS_MODULE", "ADDONS"}
    ]
    return HEAD + "\n".join(lines) + "\n" + SCRAPYS + "\n".join([*scrapys, ""])


def _row(name: str, default: object, metadata: Mapping[str, Any]) -> str:
    cells = [f"`{name}`", _default(default), _rule(metadata["parse"]), metadata["meaning"]]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(default: object) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, tuple):
        return _code(",".join(default))
    return str(int(default)) if isinstance(default, bool) else _code(default)


def _rule(parse: Callable[[str], object]) -> str:
    """Return what a parser says of a value that is none."""
    try:
        parse("\0")
    except ValueError as error:
        said, _, _ = str(error).partition(r", '\x00'")
        return said.removeprefix("must be ")
    return ""


def _code(value: object) -> str:
    return f"`{value}`"


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
    print(f"{PREFIX}*: {len(fields(Config))} settings")
