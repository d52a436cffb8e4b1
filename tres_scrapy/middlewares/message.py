"""Downloader middlewares that clean messages: no credentials in URLs, only known encodings."""

from __future__ import annotations

import logging
import re
from typing import Final, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response, TextResponse
from scrapy.utils.httpobj import urlparse_cached

from tres_scrapy.downloader.compression import with_encoding
from tres_scrapy.page.language import encoding_of
from tres_scrapy.url.message import CREDENTIALS, without_credentials

# control characters except tab and newline; the last ones change the direction of text
_COMMANDS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


class LogFilter(logging.Filter):
    """Removes credentials from log messages, and escapes control characters of terminals.

    Scrapy logs the targets of meta refreshes, at DEBUG, and the texts of headers, in warnings.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        told = _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], without_credentials(message))
        if told != message:
            record.msg, record.args = told, ()
        return True


_FILTER: Final = LogFilter()


class CredentialMiddleware:
    """Removes credentials from the URLs of requests: Scrapy cannot send them, but logs them.

    Runs closer to the downloader than Scrapy's redirects, which log and store their targets.
    """

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        for handler in logging.root.handlers:
            handler.addFilter(_FILTER)
        return cls()

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


class CharsetMiddleware:
    """Gives each text response an encoding that browsers know; Scrapy would believe any name.

    Runs on unpacked bodies, before anything reads their text. The body itself is not decoded here.
    """

    def process_response(self, request: Request, response: Response) -> Response:
        if not isinstance(response, TextResponse):
            return response
        content_type = (response.headers.get("Content-Type") or b"").decode("latin-1")
        return with_encoding(response, encoding_of(response.body, content_type))
