"""The downloader middleware that drops the user names and passwords that stand in URLs."""

from __future__ import annotations

import re
from typing import Final

from scrapy import Request
from scrapy.http import Response
from scrapy.utils.httpobj import urlparse_cached

CREDENTIALS: Final = re.compile(r"^(\s*([a-z][a-z0-9+.-]*:)?//)[^/\\?#]*@", re.IGNORECASE)


class CredentialMiddleware:
    """Asks for a URL as if no credentials stood in it: Scrapy could not, but would log them.

    It stands nearer to the web than Scrapy's redirects, which log and keep where they lead.
    """

    def process_request(self, request: Request) -> Request | None:
        if "@" not in urlparse_cached(request).netloc:
            return None
        return request.replace(url=CREDENTIALS.sub(r"\1", request.url))

    def process_response(self, request: Request, response: Response) -> Response:
        location = response.headers.get("Location")
        if location is not None and b"@" in location:
            text = CREDENTIALS.sub(r"\1", location.decode("latin-1"))
            response.headers["Location"] = text.encode("latin-1")
        return response
