"""The canonical form of a URL, under which a page is fetched once, and its registrable domain."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import tldextract
from w3lib.url import safe_url_string

MAX_URL_LENGTH: Final = 2_000
MAX_HOST: Final = 253  # characters of a name in DNS
MAX_LABEL: Final = 63  # of a part between two dots
DEFAULT_PORTS: Final = {"http": 80, "https": 443}
HOST: Final = re.compile(r"([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|[0-9a-f:]*:[0-9a-f:.]*")
# where `urlsplit` finds the host, and the dots of international names
_AUTHORITY: Final = re.compile(r"[\x00-\x20]*(?:[a-z][a-z0-9+.-]*:)?//([^/?#]*)", re.IGNORECASE)
_DROPPED: Final = dict.fromkeys(map(ord, "\t\r\n"))
_DOT: Final = re.compile(r"[.\u3002\uff0e\uff61]")
# a URL as people type it: without a scheme, on a host with a dot or on this machine
BARE_URL: Final = re.compile(
    r"(?:[^\s/?#:@,\[\]]+\.[^\s/?#:@,\[\]]+|localhost|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?#]\S*)?",
    re.IGNORECASE,
)
# matches URLs that are already canonical: most links, in a tenth of the time of parsing
PLAIN_URL: Final = re.compile(
    r"https?://([a-z0-9][a-z0-9-]{0,62}\.)+[a-z]{2,63}(?:/(?!\.)[A-Za-z0-9._~-]*+)++"
    r"(\?[A-Za-z0-9/._~=&+-]+)?"
)
_ESCAPED_DOT: Final = re.compile("%2e", re.IGNORECASE)


def with_scheme(text: str) -> str:
    """Return a URL that was typed without a scheme as https; return any other text as it is."""
    return f"https://{text}" if BARE_URL.fullmatch(text) else text


def has_long_host(url: str) -> bool:
    """Return whether no host can have the name in a URL: it or a label of it is too long.

    To encode such a name (IDNA) takes quadratic time, 2 s for 2,000 letters.
    """
    found = _AUTHORITY.match(url.translate(_DROPPED))
    host = found[1].rpartition("@")[2].partition(":")[0] if found is not None else ""
    return len(host) > MAX_HOST + 1 or any(len(label) > MAX_LABEL for label in _DOT.split(host))


def canonicalise(url: str) -> str | None:
    """Return the URL as a browser would request it, or None if it cannot be fetched.

    Only differences that no page depends on are removed: case of scheme and host, the dot after the
    host, default port, fragment, empty path and escapes. So are the segments `.` and `..`, by which
    a link could pass by a rule of robots.txt. The query keeps its order. A user name and password
    are left out, so that they are never stored.
    """
    if len(url) > MAX_URL_LENGTH:
        return None
    if PLAIN_URL.fullmatch(url) and url.index("/", len("https://")) <= MAX_HOST:
        return url
    if has_long_host(url):
        return None
    try:
        parts = urlsplit(safe_url_string(url))
        host, port = parts.hostname or "", parts.port
    except ValueError:  # a bad port, bracket or international name
        return None
    is_host = HOST.fullmatch(host) is not None and len(host := host.removesuffix(".")) <= MAX_HOST
    if parts.scheme not in DEFAULT_PORTS or port == 0 or not is_host:
        return None
    place = f"[{host}]" if ":" in host else host
    place += "" if port in {None, DEFAULT_PORTS[parts.scheme]} else f":{port}"
    canonical = urlunsplit((parts.scheme, place, _without_dots(parts.path), parts.query, ""))
    return canonical if len(canonical) <= MAX_URL_LENGTH else None


def _without_dots(path: str) -> str:
    """Return a path without the segments `.` and `..`; each `..` removes the one before it."""
    kept: list[str] = []
    name = ""
    for segment in path.split("/")[1:]:
        name = _ESCAPED_DOT.sub(".", segment)
        if name == "..":
            del kept[-1:]
        elif name != ".":
            kept.append(segment)
    return "/".join(["", *kept, *([""] if name in {".", ".."} or not kept else [])])


_suffixes = tldextract.TLDExtract(  # the bundled list only
    suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True
)


@lru_cache(maxsize=1_000)  # each new host is looked up twice
def registrable_domain(host: str) -> str:
    """Return the registrable domain of `host`; an address or a single label is its own domain.

    So is each name below a private suffix of the list, such as `me.github.io`.
    """
    host = host.removesuffix(".")
    if ":" in host or host[-1:].isdecimal():
        try:
            return str(ipaddress.ip_address(host.strip("[]")))
        except ValueError:
            pass
    found = _suffixes(host)
    if found.suffix == host:
        return host
    # The list's implicit rule "*": under an unlisted top-level domain, domains are registered
    # directly below it.
    return found.top_domain_under_public_suffix or ".".join(host.split(".")[-2:])


def is_public_suffix(host: str) -> bool:
    """Return whether domains are registered below `host`, such as edu or co.uk."""
    return _suffixes(host).suffix == host


def has_known_suffix(host: str) -> bool:
    """Return whether a host ends in a suffix of the list: notes.txt does not."""
    return bool(_suffixes(host).suffix)


def domain_of(url: str) -> str:
    """Return the registrable domain of a URL."""
    return registrable_domain(urlsplit(url).hostname or "")
