"""The canonical form of a URL, under which a page is stored and fetched once."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from w3lib.url import safe_url_string

MAX_URL_LENGTH: Final = 2_000
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
HOST: Final = re.compile(r"([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:]*:[0-9a-f:.]*")
# a URL as people type it: without a scheme, on a host with a dot or on this machine
BARE_URL: Final = re.compile(
    r"(?:[^\s/?#:@,\[\]]+\.[^\s/?#:@,\[\]]+|localhost|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?#]\S*)?",
    re.IGNORECASE,
)
# matches URLs that are already canonical: most links, in a tenth of the time of parsing
PLAIN_URL: Final = re.compile(
    r"https?://([a-z0-9][a-z0-9-]{0,62}\.)+[a-z]{2,63}/[A-Za-z0-9/._~-]*(\?[A-Za-z0-9/._~=&+-]+)?"
)


def with_scheme(text: str) -> str:
    """Return a URL that was typed without a scheme as https; return any other text as it is."""
    return f"https://{text}" if BARE_URL.fullmatch(text) else text


def canonicalise(url: str) -> str | None:
    """Return the URL as a browser would request it, or None if it cannot be fetched.

    Only differences that no page depends on are removed: case of scheme and host, the dot after the
    host, default port, fragment, empty path and escapes. The query keeps its order. A user name and
    password are left out, so that they are never stored.
    """
    if len(url) > MAX_URL_LENGTH:
        return None
    if PLAIN_URL.fullmatch(url):
        return url
    try:
        parts = urlsplit(safe_url_string(url))
        host, port = parts.hostname or "", parts.port
    except ValueError:  # a bad port, bracket or international name
        return None
    if parts.scheme not in DEFAULT_PORTS or port == 0 or HOST.fullmatch(host) is None:
        return None
    host = host.removesuffix(".")
    place = f"[{host}]" if ":" in host else host
    place += "" if port in {None, DEFAULT_PORTS[parts.scheme]} else f":{port}"
    canonical = urlunsplit((parts.scheme, place, parts.path or "/", parts.query, ""))
    return canonical if len(canonical) <= MAX_URL_LENGTH else None
