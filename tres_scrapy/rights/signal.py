"""A signal about the use of a page, and the uses that it reserves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

SEARCH, AI_INPUT, AI_TRAIN = USES = ("search", "ai-input", "ai-train")
CONTENT_SIGNAL, CONTENT_USAGE = "Content-Signal", "Content-Usage"
TDM_RESERVATION, TDM_POLICY = "tdm-reservation", "tdm-policy"
LICENCE = "license"
NONE: Final = "none"  # the signal of a page without signals; `where` says what was read
UNAVAILABLE: Final = "unavailable_after"
MAX_VALUE: Final = 300  # characters kept of a value
MAX_SIGNALS: Final = 30  # of a page, from each place
AI: Final = frozenset({AI_INPUT, AI_TRAIN})
NOTHING: Final[frozenset[str]] = frozenset()
# Directives of meta robots and X-Robots-Tag, and the uses that each reserves.
DIRECTIVES: Final[Mapping[str, frozenset[str]]] = {
    "noai": AI,
    "noimageai": NOTHING,  # for images, which are not in the output
    "noarchive": AI,
    "nosnippet": frozenset({AI_INPUT}),
    "noindex": frozenset({SEARCH}),
}
_LABELS: Final = {"search": SEARCH, "train-ai": AI_TRAIN}  # of Content-Usage
# A dictionary of RFC 9651: members `key=value;parameters`, of which only tokens matter here.
_KEY: Final = r"[a-z*][a-z0-9_.*-]*+"
_ITEM: Final = (
    r"""(?:"(?:[ !#-\[\]-~]|\\["\\])*+"|:[A-Za-z0-9+/=]*+:|\?[01]|@-?\d{1,15}|"""
    r"""-?\d{1,15}(?:\.\d{1,3})?|[A-Za-z*][!#$%&'*+.^_`|~0-9A-Za-z:/-]*+)"""
)
_PARAMETERS: Final = rf"(?:; *{_KEY}(?:={_ITEM})?)*+"
_LIST: Final = rf"\( *(?:{_ITEM}{_PARAMETERS}(?: +|(?=\))))*+\)"
_MEMBER: Final = re.compile(rf"({_KEY})(?:=({_ITEM}|{_LIST}))?{_PARAMETERS}[ \t]*+(?:,[ \t]*+|$)")


class Signal(NamedTuple):
    """What was said about the use of a page: where it stood, and when it was read (ISO 8601)."""

    signal: str
    value: str
    where: str
    when: str = ""


def reserved_uses(signals: Iterable[Signal], now: datetime | None = None) -> frozenset[str]:
    """Return the uses that any of the signals reserves: what one allows lifts no other."""
    now = now or datetime.now(UTC)
    found = (_RULES.get(each.signal.lower(), _directive)(each, now) for each in signals)
    return frozenset().union(*found)


def preferences(text: str) -> dict[str, str]:
    """Return the values `y` and `n` of a Content-Usage by label; none if it cannot be parsed."""
    found: dict[str, str] = {}
    text, place = text.strip(" \t"), 0
    while place < len(text):
        member = _MEMBER.match(text, place)
        if member is None:
            return {}
        found[member[1]] = member[2] or ""
        place = member.end()
    if text.endswith(","):
        return {}
    return {label: value for label, value in found.items() if value in {"y", "n"}}


def as_items(signals: Iterable[Signal]) -> list[dict[str, str]]:
    """Return signals as the item of a page and the file of a run hold them."""
    return [each._asdict() for each in signals]


def _content_signal(signal: Signal, now: datetime) -> frozenset[str]:
    said = (part.partition("=") for part in signal.value.lower().split(","))
    denied = frozenset(name.strip() for name, _, value in said if value.strip() == "no")
    return denied.intersection(USES)


def _content_usage(signal: Signal, now: datetime) -> frozenset[str]:
    said = preferences(signal.value)
    return frozenset(use for label, use in _LABELS.items() if said.get(label) == "n")


def _reservation(signal: Signal, now: datetime) -> frozenset[str]:
    return AI if signal.value.strip() == "1" else NOTHING


def _unavailable(signal: Signal, now: datetime) -> frozenset[str]:
    """Reserve a page from a date on; a date that cannot be read counts as past."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            until = read(signal.value.strip())
        except (ValueError, OverflowError):
            continue
        until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
        return frozenset(USES) if until <= now else NOTHING
    return frozenset(USES)


def _directive(signal: Signal, now: datetime) -> frozenset[str]:
    return DIRECTIVES.get(signal.signal, NOTHING)


_RULES: Final[Mapping[str, Callable[[Signal, datetime], frozenset[str]]]] = {
    CONTENT_SIGNAL.lower(): _content_signal,
    CONTENT_USAGE.lower(): _content_usage,
    TDM_RESERVATION: _reservation,
    UNAVAILABLE: _unavailable,
}
