"""Access to the live page: only requests with the token from the log are served."""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit

from twisted.web.http import Request

TOKEN_HEADER: Final = b"X-Tres-Token"
HOSTS: Final = ("127.0.0.1", "localhost")
# The page loads only its own files; no other page may frame it, read it or see its address.
# Plotly's styles are allowed by their hashes: an empty element, one for maps, empty attributes.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src-attr 'unsafe-hashes' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=' "
    "'sha256-ji27qzEtxXZW+7dun6UwjHXJ18e6WAin1VvNtkzIE/o='; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    b"Content-Security-Policy": POLICY.encode(),
    b"X-Content-Type-Options": b"nosniff",
    b"X-Frame-Options": b"DENY",
    b"Referrer-Policy": b"no-referrer",
    b"Cross-Origin-Opener-Policy": b"same-origin",
    b"Cross-Origin-Resource-Policy": b"same-origin",
    b"Cache-Control": b"no-store",
}


class PageAccess:
    """Checks requests against the secrets of one crawl.

    The token gives access to everything; it is sent in a header that other sites cannot set. The
    cookie gives access only to the page's files, as browsers send it to every port of this machine.
    """

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)

    def address(self, port: int) -> str:
        """Return the URL to open."""
        return f"http://{HOSTS[0]}:{port}/?token={self._token}"

    def knows_host(self, request: Request) -> bool:
        """Return whether a request names this machine as its host.

        A foreign name that resolves to this machine (DNS rebinding) would share the page's origin.
        """
        try:
            host = urlsplit(f"//{_only(request, b'Host')}").hostname
        except ValueError:
            return False
        return host in HOSTS

    def may_steer(self, request: Request) -> bool:
        """Return whether a request may read the crawl and change it."""
        return _equal(_only(request, TOKEN_HEADER), self._token)

    def may_open(self, request: Request) -> bool:
        """Return whether a request may load the files of the page."""
        cookie = request.getCookie(self._name(request)) or b""
        return self.may_steer(request) or _equal(cookie.decode("latin-1"), self._cookie)

    def introduces(self, request: Request) -> bool:
        """Return whether a request is a first visit, with the token in its address."""
        given = (request.args or {}).get(b"token", [])
        return len(given) == 1 and _equal(given[0].decode("latin-1"), self._token)

    def welcome(self, request: Request) -> None:
        """Set the cookie that lets this browser load the files of the page."""
        request.addCookie(
            *(self._name(request), self._cookie), path="/", httpOnly=True, sameSite="strict"
        )

    def _name(self, request: Request) -> bytes:
        """Return the cookie's name, one per port: crawls on several ports share cookies."""
        return f"tres_{request.getHost().port}".encode()


def _only(request: Request, name: bytes) -> str:
    """Return the value of a header that occurs once, else ""."""
    values = request.requestHeaders.getRawHeaders(name, [])
    return values[0].decode("latin-1") if len(values) == 1 else ""


def _equal(given: str, secret: str) -> bool:
    """Compare in constant time."""
    return secrets.compare_digest(given.encode(), secret.encode())
