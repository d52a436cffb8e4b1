"""Write docs/settings.md from the code: `python docs/settings.py`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from tres_scrapy import settings as project
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import PREFIX, Group, Setting
from tres_scrapy.config.guest import offered
from tres_scrapy.config.parser import one_of
from tres_scrapy.crawl.registry import POLICIES

HEAD = """# Settings

`-a name=value`, `-s TRES_NAME=value` and `TRES_NAME = value` in a settings file mean the same. A
misspelt name or an invalid value stops the crawl with a one-line message and exit status 1. For
`tres crawl` each is an option: `max_per_domain=10` is `--max-per-domain 10`, `csv=1` is `--csv`,
and `report=0` is `--no-report`.

The groups: {}.

The settings of `scrapy crawl surface` are called `TRES_SURFACE_NAME`, and those of `scrapy crawl
refresh` `TRES_REFRESH_NAME`. Other spiders neither read nor check them.

Where the default is empty, the setting is unset. 1 means yes and 0 means no.
"""
GROUP = """
## {}

| `-a` | default | allowed values | meaning |
|---|---|---|---|
"""
SETTINGS = [
    *Config.declared().values(),
    *(each for options in offered("options") for each in options.declared().values()),
]

SCRAPYS = """
## Scrapy's own

All of [Scrapy's settings](https://docs.scrapy.org/en/latest/topics/settings.html) work as usual.
This project sets those below. Override them with `-s NAME=value`. If you use the add-on in your own
project, the settings of your project apply instead.

| setting | value here |
|---|---|
"""


def page() -> str:
    """Return the text of docs/settings.md."""
    used = [group for group in Group if any(each.group is group for each in SETTINGS)]
    groups = "".join(map(_group, used))
    scrapys = [
        f"| `{name}` | {_code(value)} |"
        for name, value in vars(project).items()
        if name.isupper() and name not in {"SPIDER_MODULES", "COMMANDS_MODULE", "ADDONS"}
    ]
    links = ", ".join(f"[{group.value}](#{_anchor(group.value)})" for group in used)
    return HEAD.format(links) + groups + SCRAPYS + "\n".join([*scrapys, ""])


def _anchor(heading: str) -> str:
    """Return the anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-")


def _group(group: Group) -> str:
    rows = [_row(each) for each in SETTINGS if each.group is group]
    return GROUP.format(group.value) + "\n".join([*rows, ""])


def _row(setting: Setting) -> str:
    if setting.name == "TRES_POLICY":  # its rule stands where the policies are
        setting = replace(setting, parse=one_of(*POLICIES, "module:NAME"))
    meaning = f"{setting.meaning} (see [{setting.see}]({setting.see}))" if setting.see else ""
    cells = [f"`{setting.argument}`", _default(setting.default), _rule(setting)]
    cells += [meaning or setting.meaning]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(default: object) -> str:
    if default is None or default == ():
        return ""
    if isinstance(default, tuple):
        return _code(",".join(default))
    return str(int(default)) if isinstance(default, bool) else _code(default)


def _rule(setting: Setting) -> str:
    """Return the rule of a setting, with its choices as code."""
    rule = setting.rule
    return _choice(rule.removeprefix("one of ")) if rule.startswith("one of ") else rule


def _choice(names: str) -> str:
    """Return "a, b, c" as "`a`, `b` or `c`"."""
    *others, last = map(_code, names.split(", "))
    return f"{', '.join(others)} or {last}"


def _code(value: object) -> str:
    return f"`{value}`"


if __name__ == "__main__":
    Path(__file__).with_suffix(".md").write_text(page(), encoding="utf-8")
    print(f"{PREFIX}*: {len(SETTINGS)} settings")
