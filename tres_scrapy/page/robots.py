"""What robots.txt (RFC 9309, 2.1 and 2.2), meta robots and X-Robots-Tag allow this crawler."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tres_scrapy.page.language import UTF_8, declared_encoding, decoded, is_utf_8
from tres_scrapy.rights.signal import EVERY, said_to_us
from tres_scrapy.rights.site import RULE as USAGE
from tres_scrapy.url.canonical import MAX_URL_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LENGTH: Final = 512 * 1024  # bytes that are read; RFC 9309 (2.5) asks for 500 KiB
EVERYONE: Final = "*"
_PRODUCT: Final = re.compile(r"(?:Mozilla/\S+ \(compatible; *)?([\w-]+)", re.IGNORECASE)
_AGENT: Final = re.compile(r"user[- ]?agent\s*[:\s]\s*(\*(?![\w-])|[\w-]*)", re.IGNORECASE)
_RULE: Final = re.compile(
    r"(?:allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw|crawl[- ]delay)\b",
    re.IGNORECASE,
)
_SITEMAP: Final = re.compile(r"site-?map\s*:", re.IGNORECASE)
MAX_SITEMAPS: Final = 10
_NEWLINE: Final = re.compile(r"\r\n?|\n")
US: Final = "tres-scrapy"  # for this one, unless its User-Agent has another name


def product_token(user_agent: str) -> str:
    """Return the name in a User-Agent, by which robots.txt may address the crawler.

    It is the first name, or the one after `compatible;`. Return "" without a name.
    """
    found = _PRODUCT.match(user_agent.strip())
    return found[1].lower() if found else ""


def own_rules(body: bytes, token: str) -> bytes:
    """Return a robots.txt of one group: the rules of all groups that name `token`.

    If no group names it, these are the rules for everyone. Rules after MAX_LENGTH are not read.
    Usage rules before the first group count for everyone. The first MAX_SITEMAPS sitemaps follow.
    """
    text = body[:MAX_LENGTH]
    if len(body) > MAX_LENGTH:
        text = text[: max(text.rfind(b"\n"), text.rfind(b"\r")) + 1]  # no rule that is cut off
    encoding = declared_encoding(text[:4]) or (UTF_8 if is_utf_8(text) else "cp1252")
    rules: dict[str, list[str]] = {}  # by token; only the two that count
    agents: set[str] = set()
    sitemaps: list[str] = []
    common: list[str] = []  # usage rules before the first group
    in_group = False
    in_head = False  # within the user-agent lines of a group
    for line in _NEWLINE.split(decoded(text, encoding, MAX_LENGTH)):
        said = line.partition("#")[0].strip()
        if agent := _AGENT.match(said):
            agents = agents if in_head else set()
            in_group = in_head = True
            if (name := agent[1].lower()) in {token, EVERYONE}:
                agents.add(name)
                rules.setdefault(name, [])
        elif (is_usage := USAGE.match(said)) or _RULE.match(said):
            in_head = False
            if is_usage and not in_group:
                common.append(said)
            for name in agents:
                rules[name].append(said)
        elif _SITEMAP.match(said) and len(sitemaps) < MAX_SITEMAPS:
            sitemaps.append(said[:MAX_URL_LENGTH])
    own = rules.get(token, rules.get(EVERYONE, []))
    return "\n".join([f"User-agent: {EVERYONE}", *common, *own, *sitemaps]).encode()


class Permission(NamedTuple):
    """Whether a page may be kept, and whether its links may be followed."""

    keep: bool = True
    follow: bool = True


def permission_of(
    meta: Iterable[tuple[str, str]], headers: Iterable[str], crawler: str = US
) -> Permission:
    """Return what a page permits: the strictest of all that is said to every crawler or to us.

    `meta` are the names and contents of its meta elements, `headers` the values of X-Robots-Tag,
    `crawler` is our name.
    """
    names = {EVERY, crawler}
    said: set[str] = set()
    for name, content in meta:
        if name.strip().lower() in names:
            said |= _words(content)
    for value in headers:
        said |= _words(said_to_us(value, crawler))
    return Permission(said.isdisjoint({"noindex", "none"}), said.isdisjoint({"nofollow", "none"}))


def _words(text: str) -> set[str]:
    return {word.strip() for word in text.lower().split(",")}
