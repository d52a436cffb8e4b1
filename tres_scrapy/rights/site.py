"""What a site says about the use of its pages in robots.txt and tdmrep.json."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple, Self
from urllib.parse import quote, urlsplit

from tres_scrapy.rights.signal import (
    CONTENT_SIGNAL,
    CONTENT_USAGE,
    MAX_VALUE,
    TDM_POLICY,
    TDM_RESERVATION,
    Signal,
)

RULE: Final = re.compile(r"(content-(?:signal|usage))\s*:\s*(.*)", re.IGNORECASE)
MAX_STATEMENTS: Final = 1_000  # read of one file
TDM_FILE: Final = "/.well-known/tdmrep.json"
_ESCAPE: Final = re.compile("%[0-9a-f]{2}", re.IGNORECASE)
_KEPT: Final = "%/:?#[]@!$&'()*+,;=~"


class Statement(NamedTuple):
    """What a site says about the paths that match an encoded pattern, "" for all."""

    path: str
    signal: str
    value: str


class SiteRules(NamedTuple):
    """What one file of a site says about the use of its pages."""

    statements: tuple[Statement, ...] = ()
    where: str = "robots.txt"
    when: str = ""
    longest: bool = True  # the longest pattern that matches counts; else the first one

    @classmethod
    def of_robots(cls, text: str, when: str) -> Self:
        """Read the rules Content-Signal and Content-Usage of a group of robots.txt."""
        found = []
        for line in text.splitlines():
            if rule := RULE.match(line):
                path, value = _parted(rule[2].partition("#")[0].strip())
                name = CONTENT_SIGNAL if rule[1].lower() == "content-signal" else CONTENT_USAGE
                found.append(Statement(_encoded(path), name, value[:MAX_VALUE]))
        return cls(tuple(found[:MAX_STATEMENTS]), when=when)

    @classmethod
    def of_tdm_file(cls, body: bytes, when: str) -> Self:
        """Read a tdmrep.json; raise ValueError if it is not an array of rules."""
        try:
            rules = json.loads(body)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(rules, list):
            raise ValueError("must be an array of rules")
        found = [
            Statement(_encoded(f"/{rule['location'].removeprefix('/')}"), name, _text(rule[name]))
            for rule in rules[:MAX_STATEMENTS]
            if isinstance(rule, dict) and isinstance(rule.get("location"), str)
            for name in (TDM_RESERVATION, TDM_POLICY)
            if isinstance(rule.get(name), int | str)
        ]
        return cls(tuple(found), "tdmrep.json", when, longest=False)

    @classmethod
    def unknown(cls, signal: str, why: str, where: str, when: str) -> Self:
        """Return the rules of a file that could not be read: the signal is unknown."""
        return cls((Statement("", signal, why),), where, when)

    def of(self, url: str) -> tuple[Signal, ...]:
        """Return the signals for a URL: of each name, those of the pattern that counts.

        Rules with the same pattern all count.
        """
        if not self.statements:
            return ()
        parts = urlsplit(url)
        target = _encoded(parts.path or "/") + (f"?{_encoded(parts.query)}" if parts.query else "")
        match = [each for each in self.statements if matches(each.path, target)]
        if not match:
            return ()
        paths: dict[str, str] = {}
        for each in match:
            held = paths.setdefault(each.signal, each.path)
            if self.longest and len(each.path) > len(held):
                paths[each.signal] = each.path
        if not self.longest:
            paths = dict.fromkeys(paths, match[0].path)
        return tuple(
            Signal(each.signal, each.value, f"{self.where} {each.path}".strip(), self.when)
            for each in match
            if each.path == paths[each.signal]
        )


NO_RULES: Final = SiteRules()


def matches(pattern: str, path: str) -> bool:
    """Return whether a pattern of RFC 9309, with `*` and a last `$`, matches a path."""
    whole = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    if not rest:
        return not whole or path == first
    place = len(first)
    for piece in rest[:-1]:  # the leftmost place leaves most for the others
        place = path.find(piece, place)
        if place < 0:
            return False
        place += len(piece)
    if whole:
        return len(path) - len(rest[-1]) >= place and path.endswith(rest[-1])
    return path.find(rest[-1], place) >= 0


def _parted(text: str) -> tuple[str, str]:
    if not text.startswith("/"):
        return "", text
    path, *value = text.split(maxsplit=1)
    return path, "".join(value)


def _text(value: int | str) -> str:
    """Return a value of a rule, 1 for true; raise ValueError if it is not Unicode."""
    text = str(int(value) if isinstance(value, bool) else value)[:MAX_VALUE]
    text.encode()
    return text


def _encoded(path: str) -> str:
    return _ESCAPE.sub(lambda found: found[0].upper(), quote(path, safe=_KEPT))
