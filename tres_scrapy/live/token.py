"""Who may see the live page and steer the crawl: whoever knows the token that the log told."""

from __future__ import annotations

import secrets
from typing import Final
from urllib.parse import urlsplit

from twisted.web.http import Request

TOKEN_HEADER: Final = b"X-Tres-Token"
HOSTS: Final = ("127.0.0.1", "localhost")
# The page is of our own files only; of other pages none may frame it, read it or learn its address.
# Plotly fills an empty style element of its own, which is allowed by its hash.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "style-src 'self' 'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='; "
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


class Gate:
    """Keeps the secrets of one crawl.

    The token opens everything, in a header that no other site can make a browser send. The cookie
    opens only the files of the page, for browsers send it to every port of this machine.
    """

    def __init__(self) -> None:
        self._token = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)

    def address(self, port: int) -> str:
        """Return the URL to open."""
        return f"http://{HOSTS[0]}:{port}/?token={self._token}"

    def knows_host(self, request: Request) -> bool:
        """Say whether a request was meant for this machine, by a name that no one else can have.

        A name of another's that leads here (DNS rebinding) would give its pages our origin.
        """
        try:
            host = urlsplit(f"//{_only(request, b'Host')}").hostname
        except ValueError:
            return False
        return host in HOSTS

    def may_steer(self, request: Request) -> bool:
        """Say whether a request may read the crawl and change it."""
        return _equal(_only(request, TOKEN_HEADER), self._token)

    def may_open(self, request: Request) -> bool:
        """Say whether a request may have the page's files."""
        cookie = request.getCookie(self._name(request)) or b""
        return self.may_steer(request) or _equal(cookie.decode("latin-1"), self._cookie)

    def introduces(self, request: Request) -> bool:
        """Say whether a request is a first visit, by the address that the log told."""
        given = (request.args or {}).get(b"token", [])
        return len(given) == 1 and _equal(given[0].decode("latin-1"), self._token)

    def welcome(self, request: Request) -> None:
        """Let the browser of a first visit have the page's files from now on."""
        request.addCookie(
            *(self._name(request), self._cookie), path="/", httpOnly=True, sameSite="strict"
        )

    def _name(self, request: Request) -> bytes:
        """Return the cookie's name: crawls on several ports share the browser's cookies."""
        return f"tres_{request.getHost().port}".encode()


def _only(request: Request, name: bytes) -> str:
    """Return the value of a header that is there once, "" otherwise."""
    values = request.requestHeaders.getRawHeaders(name, [])
    return values[0].decode("latin-1") if len(values) == 1 else ""


def _equal(given: str, secret: str) -> bool:
    """Compare in a time that tells nothing of the secret."""
    return secrets.compare_digest(given.encode(), secret.encode())
