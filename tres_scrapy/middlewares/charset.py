"""The downloader middleware that decides in which encoding a page is read."""

from __future__ import annotations

from scrapy import Request
from scrapy.http import Response, TextResponse

from tres_scrapy.page.encoding import encoding_of


class CharsetMiddleware:
    """Gives each text response an encoding that browsers know; Scrapy would believe any name.

    Runs on unpacked bodies, before anything reads their text. The body itself is not decoded here.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        if not isinstance(response, TextResponse):
            return response
        content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        # `replace` would first ask the response for its own encoding
        known = {name: getattr(response, name) for name in Response.attributes}
        return type(response)(**known, encoding=encoding_of(response.body, content_type))
