"""The downloader middleware that sees the exchanges to archive."""

from __future__ import annotations

from typing import Final, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.http.headers import Headers

from tres_scrapy.downloader.request import LEASE, RECEIVED
from tres_scrapy.export.archive import Archive
from tres_scrapy.export.exchange import Exchange

# What flags of a response say of its body
TRUNCATED: Final = {"dataloss": "disconnect", "partial": "disconnect", "download_stopped": "length"}


class ArchiveMiddleware:
    """Hands on each response as it was received.

    It stands between HttpCompression, which unpacks bodies, and what takes credentials off URLs.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        archive = crawler.get_extension(Archive)
        if archive is None:
            raise NotConfigured
        archive.open()
        return cls(archive)

    async def process_response(self, request: Request, response: Response) -> Response:
        received = request.meta.pop(RECEIVED, response)  # what a browser made of it is not archived
        await self._archive.add(request.meta.get(LEASE), exchange_of(request, received))
        return response


def exchange_of(request: Request, response: Response) -> Exchange:
    """Return what is archived of a response and the request that brought it."""
    through_proxy = bool(request.meta.get("proxy"))  # whose address it would be
    cut = (TRUNCATED[flag] for flag in response.flags if flag in TRUNCATED)
    return Exchange(
        url=response.url,
        method=request.method,
        asked=_pairs(request.headers),
        sent=request.body,
        status=response.status,
        headers=_pairs(response.headers),
        body=response.body,
        ip=str(response.ip_address) if response.ip_address and not through_proxy else None,
        protocol=response.protocol or "HTTP/1.1",
        truncated=next(cut, ""),
    )


def _pairs(headers: Headers) -> list[tuple[str, str]]:
    return [
        (name.decode("latin-1"), value.decode("latin-1"))
        for name, values in headers.items()
        for value in values
    ]
