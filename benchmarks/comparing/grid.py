"""The runs that the options of `compare.py` ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from comparing.condition import TOPIC
from comparing.result import Run, make_grid
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import identifier, one_of, seeds, whole
from tres_scrapy.crawl.registry import POLICIES, kind_of
from tres_scrapy.url.message import TresError, plainly

ALL: Final = "all"  # policies
WEBS: Final = ("synthetic", "corpus", "recorded")  # webs that can be crawled without search forms

Value = TypeVar("Value")


def grid_of(
    *,
    web: str,
    topics: Sequence[str],
    policies: Sequence[str],
    max: Sequence[str],  # noqa: A002 - the name of the option
    starts: Sequence[str],
    seeds: Sequence[str],
    pages: str,
    **_: Any,
) -> list[Run]:
    """Return the runs that the options ask for; raise TresError if an option is not valid."""
    chosen = _each(policies)
    if not chosen or ALL in chosen:
        chosen = list(POLICIES)
    caps = [value_of("--max", text, Cap.parse) for text in _each(max or ["none", "10"])]
    numbers = seeds or (["1"] if starts else ["1", "2", "3"])
    return make_grid(
        value_of("--web", web, one_of(*WEBS)),
        value_of("--pages", pages, whole(1)),
        topics=[value_of("--topics", text, identifier) for text in _each(topics or ["food"])],
        policies=[value_of("--policies", text, _policy) for text in chosen],
        caps=["none" if cap is None else str(cap) for cap in caps],
        seeds=[value_of("--seeds", text, whole(0, 2**31 - 1)) for text in _each(numbers)],
        starts=lambda topic: list(_starts(starts, topic)) or [""],
    )


def _starts(options: Sequence[str], topic: str) -> Iterator[str]:
    """Yield the starts of a topic, each its URLs with commas between; raise TresError if wrong."""
    for text in options:
        name = text.replace(TOPIC, topic)
        lines = [text]
        if text.startswith("@"):
            lines = value_of("--starts", name, lambda name: _lines(Path(name[1:])))
        for line in lines:
            yield ",".join(value_of("--starts", line, seeds))


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; raise TresError if it is empty or cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TresError(f"cannot be read: {plainly(error)}") from None
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found:
        raise TresError("must hold at least one start")
    return found


def _policy(text: str) -> str:
    """Return the name of a policy; raise ValueError if there is none."""
    if ":" in text:
        kind_of(text)
        return text
    return one_of(*POLICIES)(text)


def _each(texts: Sequence[str]) -> list[str]:
    """Return the values of a list option, separated by spaces or commas."""
    return [part for text in texts for part in text.split(",")]


def value_of(option: str, text: str, parse: Callable[[str], Value]) -> Value:
    """Parse the value of an option; raise TresError, which names the option, if it is wrong."""
    try:
        return parse(text)
    except ValueError as error:
        raise TresError(f"{option} {text!r} {error}") from None
