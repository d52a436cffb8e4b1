"""Parsers of settings: each takes a text and raises ValueError("must ...") if it is wrong."""

from __future__ import annotations

import logging
import math
import re
import shlex
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

from tres_scrapy.url.canonical import BARE_URL, canonicalise, has_known_suffix, with_scheme

SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!\d{1,5}(?:[/?#,]|$))")  # not HOST:PORT
HOST_ONLY: Final = re.compile(r"(?:https?://)?[^/?#]+")
CALLABLE = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
CONTACT: Final = re.compile(r"https?://[^\s()@]+\.[^\s()@]+|[^\s()@:/]+@[^\s()@]+\.[^\s()@]+")
# seconds
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}

T = TypeVar("T")

logger = logging.getLogger(__name__)


def identifier(text: str) -> str:
    """Accept a name that is safe as a file name."""
    if not re.fullmatch(r"[\w-]+", text):
        raise ValueError("must be letters, digits, - and _ only")
    return text


def names(text: str) -> str:
    """Accept names that are safe as a file name, with commas between; return them joined by +."""
    parts = [part.strip() for part in re.split(r"[,+]", text)]
    if not all(re.fullmatch(r"[\w-]+", part) for part in parts):
        raise ValueError("must be letters, digits, - and _, with commas between several names")
    return "+".join(dict.fromkeys(parts))


def callable_name(text: str) -> str:
    """Accept package.module:callable."""
    if not re.fullmatch(CALLABLE, text, re.ASCII):
        raise ValueError("must be package.module:callable")
    return text


def answerer_name(text: str) -> str:
    """Accept http, program COMMAND or package.module:callable."""
    try:
        first, *more = shlex.split(text)
    except ValueError:  # an open quotation mark, or nothing
        first, more = "", []
    if text != "http" and not (first == "program" and more):
        try:
            return callable_name(text)
        except ValueError:
            raise ValueError("must be http, program COMMAND or package.module:callable") from None
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """Return a parser that accepts `choices` only."""

    def parse(text: str) -> str:
        if text not in choices:
            close = get_close_matches(text, choices, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(f"must be one of {', '.join(choices)}{hint}")
        return text

    return parse


def some_of(*choices: str) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of several `choices` separated by commas, or "none"."""

    def parse(text: str) -> tuple[str, ...]:
        chosen = [] if text == "none" else [each.strip() for each in text.split(",")]
        if not set(chosen) <= set(choices):
            raise ValueError(f"must be none, or some of {', '.join(choices)} with commas between")
        return tuple(dict.fromkeys(chosen))

    return parse


def flag(text: str) -> bool:
    """Read 1, 0, true or false."""
    if text.lower() not in {"1", "0", "true", "false"}:
        raise ValueError("must be 1 or 0")
    return text.lower() in {"1", "true"}


def port(text: str) -> int | None:
    """Read a port to listen on: "0" returns None (off), "1" returns 0 (any free port)."""
    if not re.fullmatch(r"\d{1,5}", text) or int(text) not in {0, 1, *range(1024, 65536)}:
        raise ValueError("must be 1 (any free port), 0 (off) or a port from 1024 to 65535")
    return {0: None, 1: 0}.get(int(text), int(text))


def whole(low: int, high: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers from `low` to `high`."""
    limits = f"of {low} or more" if high is None else f"from {low} to {high}"

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


def paths(text: str) -> tuple[Path, ...]:
    """Read file names separated by commas."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError("must be file names separated by single commas")
    return tuple(map(Path, names))


def prom_file(text: str) -> Path:
    """Accept a file name ending in .prom."""
    if not text.endswith(".prom"):
        raise ValueError("must be a name ending in .prom")
    return Path(text)


def duration(text: str) -> float:
    """Read a duration such as 90, 90s, 15m, 6h, 1d or 2w; return seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw]?)", text)
    if not match:
        raise ValueError("must be a time such as 90s, 15m, 6h, 1d or 2w")
    return float(match[1]) * UNITS[match[2]]


def contact(text: str) -> str:
    """Accept a mail address or an http(s) URL, as it stands in a header."""
    if not CONTACT.fullmatch(text) or not (text.isascii() and text.isprintable()):
        raise ValueError("must be a mail address or an http(s) URL")
    return text


def proxy_url(text: str) -> str:
    """Accept the address of a proxy, such as http://127.0.0.1:8000."""
    parts = urlsplit(text)
    if parts.scheme != "http" or not parts.hostname or parts.path.strip("/"):
        raise ValueError("must be the address of an HTTP proxy, such as http://127.0.0.1:8000")
    return text.rstrip("/")


def parted(text: str) -> list[str]:
    """Split URLs at the commas between them: a comma may also be part of a URL.

    A URL begins after a comma that stands in no path, before a scheme, or before a site if the
    URLs have no scheme.
    """
    first, *pieces = text.split(",")
    found = [first]
    for piece in pieces:
        word, before = piece.strip(), found[-1].strip()
        is_next = SCHEME.match(word) or (word and HOST_ONLY.fullmatch(before))
        if is_next or (BARE_URL.fullmatch(before) and names_site(word)):
            found.append(piece)
        else:
            found[-1] += f",{piece}"
    return [url.strip() for url in found]


def joined(words: Sequence[str]) -> str:
    """Return words of a command line as one text, in which `parted` finds each URL again."""
    bare = [] if len(words) == 1 else [each for each in words if is_bare(each)]
    if bare:
        say_scheme(*bare)
    return ",".join(with_scheme(each) if each in bare else each for each in words)


def names_site(text: str) -> bool:
    """Return whether a text is a URL without a scheme rather than the name of a file."""
    if not BARE_URL.fullmatch(text):
        return False
    host = re.split(r"[/?#:]", text)[0].lower()
    return host == "localhost" or has_known_suffix(host) or ":" in text.partition("/")[0]


def patterns(text: str) -> tuple[str, ...]:
    """Read a regular expression, or @FILE with one per line."""
    found = lines_of(text[1:]) if text.startswith("@") else [text]
    for pattern in found:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(
                f"must be a regular expression or @FILE, {pattern!r} is not one: {error}"
            ) from None
    return tuple(found)


def hosts(text: str) -> tuple[str, ...]:
    """Read domains or suffixes separated by commas, or @FILE with one per line."""
    found = []
    for name in lines_of(text[1:]) if text.startswith("@") else text.split(","):
        url = canonicalise(f"http://{name.strip().lstrip('.')}/")
        host = None if url is None else urlsplit(url).hostname
        if not host or url != f"http://{host}/":
            raise ValueError(
                f"must be domains such as example.org,.edu or @FILE, {name.strip()!r} is not one"
            )
        found.append(host)
    return tuple(dict.fromkeys(found))


def file_of(read: Callable[[str], T], example: str) -> Callable[[str], tuple[T, ...]]:
    """Return a parser of a file of lines such as `example`, each of which `read` parses."""
    rule = f"must be a file of lines such as `{example}`"

    def parse(text: str) -> tuple[T, ...]:
        if "\0" in text:  # no name of a file
            raise ValueError(rule)
        found = []
        for line in lines_of(text):
            try:
                found.append(read(line))
            except ValueError:
                raise ValueError(f"{rule}, not {line!r}") from None
        return tuple(found)

    return parse


def _budget(line: str) -> tuple[str, int]:
    """Read a domain and its most pages, such as `example.org 50`."""
    name, _, most = line.rpartition(" ")
    (host,) = hosts(name)
    if not re.fullmatch("[1-9][0-9]{0,8}", most):
        raise ValueError
    return host, int(most)


budgets = file_of(_budget, "example.org 50")


def languages(text: str) -> tuple[str, ...]:
    """Read codes of languages of two letters (ISO 639-1), separated by commas."""
    codes = [code.strip().lower() for code in text.split(",")]
    if not all(re.fullmatch("[a-z]{2}", code) for code in codes):
        raise ValueError("must be codes of two letters such as en,de")
    return tuple(dict.fromkeys(codes))


def lines_of(name: str) -> list[str]:
    """Return the lines of a file, without comments; raise ValueError if it cannot be read."""
    try:
        lines = Path(name).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"cannot be read: {said}") from None
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def seeds(text: str) -> tuple[str, ...]:
    """Read URLs separated by commas, or @FILE with one per line; return each once, canonical.

    A URL without a scheme is taken as https, which the log says.
    """
    urls = lines_of(text[1:]) if text.startswith("@") else parted(text)
    seeds = []
    for url in urls:
        seed = canonicalise(with_scheme(url) if is_bare(url) else url)
        if seed is None and Path(url).is_file():
            raise ValueError(f"must hold URLs, and {url!r} is a file: write @{url} to read it")
        if seed is None:
            raise ValueError(
                f"must hold http(s) URLs such as https://example.org/, {url!r} is not one"
            )
        seeds.append(seed)
    if not seeds:
        raise ValueError("must hold at least one URL")
    if bare := [url for url in urls if is_bare(url)]:
        say_scheme(*bare)
    return tuple(dict.fromkeys(seeds))


def is_bare(text: str) -> bool:
    """Return whether a text is a URL without a scheme, and not the name of a file here."""
    return BARE_URL.fullmatch(text) is not None and not Path(text).is_file()


@cache  # settings are read several times
def say_scheme(*urls: str) -> None:
    """Log once that URLs without a scheme are taken as https."""
    more = f" (and {len(urls) - 1:,} more)" if len(urls) > 1 else ""
    logger.warning("No scheme given: taken as %s%s", with_scheme(urls[0]), more)
