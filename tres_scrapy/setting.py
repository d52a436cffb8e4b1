"""The rules of settings: each parser takes text and raises ValueError that ends "must ..."."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

from tres_scrapy.topic.text import canonicalise


def identifier(text: str) -> str:
    """Accept a name that is safe as a file name."""
    if not re.fullmatch(r"[\w-]+", text):
        raise ValueError("must be letters, digits, - and _ only")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser that accepts `choices` only."""

    def parse(text: str) -> str:
        if text not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text

    return parse


def flag(text: str) -> bool:
    """Read 1, 0, true or false."""
    if text.lower() not in {"1", "0", "true", "false"}:
        raise ValueError("must be 1 or 0")
    return text.lower() in {"1", "true"}


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from `low` to `high`."""
    limits = f"from {low} up" if high is None else f"from {low} to {high}"

    def parse(text: str) -> int:
        if not re.fullmatch(r"\d+", text) or not low <= int(text) <= (high or int(text)):
            raise ValueError(f"must be a whole number {limits}")
        return int(text)

    return parse


def number(low: float, high: float) -> Callable[[str], float]:
    """Return a parser of numbers from `low` to `high`."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        return number

    return parse


def query_url(text: str) -> str:
    """Accept an http(s) URL with {query} in it."""
    if text.count("{query}") != 1 or canonicalise(text.replace("{query}", "a")) is None:
        raise ValueError("must be an http(s) URL with {query} where the words go")
    return text


def seeds(text: str) -> tuple[str, ...]:
    """Read URLs, comma between two, or @FILE with one a line; return them canonical, each once."""
    if text.startswith("@"):
        try:
            lines = Path(text[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"cannot be read: {error}") from None
        urls = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    else:
        urls = [url.strip() for url in re.split(r",(?=\s*[A-Za-z][A-Za-z0-9+.-]*:)", text)]
    seeds = []
    for url in urls:
        seed = canonicalise(url)
        if seed is None:
            raise ValueError(
                f"must hold http(s) URLs such as https://example.org/, {url!r} is none"
            )
        seeds.append(seed)
    if not seeds:
        raise ValueError("must hold at least one URL")
    return tuple(dict.fromkeys(seeds))
