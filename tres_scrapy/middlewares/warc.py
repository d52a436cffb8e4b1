"""The downloader middleware that passes exchanges to the archive."""

from __future__ import annotations

from typing import Final, Self

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response

from tres_scrapy.downloader.request import LEASE, RECEIVED, header_pairs
from tres_scrapy.export.archive import Archive
from tres_scrapy.export.warc_record import Exchange

# Why a body is incomplete, by flag of the response
TRUNCATED: Final = {"dataloss": "disconnect", "partial": "disconnect", "download_stopped": "length"}


class ArchiveMiddleware:
    """Passes each response to the archive as it was received.

    Runs between HttpCompression, which decompresses bodies, and CredentialMiddleware.
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
        received = request.meta.pop(RECEIVED, response)  # not the page as a browser rendered it
        await self._archive.add(request.meta.get(LEASE), exchange_of(request, received))
        return response


def exchange_of(request: Request, response: Response) -> Exchange:
    """Return a response and its request as an exchange to archive."""
    through_proxy = bool(request.meta.get("proxy"))  # then the IP address is the proxy's
    cut = (TRUNCATED[flag] for flag in response.flags if flag in TRUNCATED)
    return Exchange(
        url=response.url,
        method=request.method,
        asked=header_pairs(request.headers),
        sent=request.body,
        status=response.status,
        headers=header_pairs(response.headers),
        body=response.body,
        ip=str(response.ip_address) if response.ip_address and not through_proxy else None,
        protocol=response.protocol or "HTTP/1.1",
        truncated=next(cut, ""),
    )
