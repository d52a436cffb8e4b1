"""The extension that archives the crawl in a WARC file, and the middleware that feeds it."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from functools import partial
from typing import Final, Self

from scrapy import Request, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.downloader.request import LEASE, RECEIVED, header_pairs
from tres_scrapy.export.output_file import beside
from tres_scrapy.export.warc import (
    ArchiveWriter,
    Exchange,
    exchange_records,
    info_record,
    note_record,
)
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.topic.pack import Judged
from tres_scrapy.url.message import TresError, plainly

ARCHIVE_FAILED: Final = "archive_failed"
ENDING: Final = ".warc.gz"
PAUSE: Final = 0.05  # seconds between checks whether the writer has room again
MOST_SEEDS: Final = 1000  # written to the file, if there are more
# Why a body is incomplete, by flag of the response
TRUNCATED: Final = {"dataloss": "disconnect", "partial": "disconnect", "download_stopped": "length"}


logger = logging.getLogger(__name__)


class Archive:
    """Writes requests and responses to a WARC file, and the verdict on each page.

    With TRES_WARC=all, every exchange is written at once, and every failure. Otherwise an exchange
    is kept in memory until its page is judged, and written only if the page is relevant.
    """

    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._config = Config.of(crawler.settings)
        self._everything = self._config.output.warc == "all"
        self._failed = False
        self._exchanges: dict[int, Exchange] = {}  # the last of each leased sample

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if Config.of(crawler.settings).output.warc == "none":
            raise NotConfigured
        archive = cls(crawler)
        crawler.signals.connect(archive.engine_stopped, signal=signals.engine_stopped)
        return archive

    def open(self) -> None:
        """Open the file, after all extensions are made; raise ConfigError if that fails."""
        session = CrawlSession.of(self._crawler)
        path = beside(session.output, ENDING)
        try:
            self.writer = ArchiveWriter(path)
        except (OSError, TresError) as error:
            raise ConfigError(
                f"{named('TRES_WARC')} {str(path)!r} cannot be written: "
                f"{plainly(error, named=True)}"
            ) from None
        self.writer.put(partial(info_record, path.name, _facts(self._crawler, self._config)))
        self._crawl = session.crawl
        self._again = session.job.interrupted if session.job is not None else frozenset()
        session.listeners.append(self.booked)

    async def add(self, row: int | None, exchange: Exchange) -> None:
        """Archive an exchange; if too much waits to be written, wait without blocking others."""
        for other in [each for each in self._exchanges if not self._crawl.is_leased(each)]:
            del self._exchanges[other]  # set back: its host failed, and perhaps for good
        if row is not None and self._crawl.is_leased(row):
            self._exchanges[row] = exchange
        if self._everything:
            self._put(exchange)
            while self.writer.full and self.writer.error is None:
                await asyncio.sleep(PAUSE)

    def booked(self, booking: Booking) -> None:
        """Write the verdict on a sample, and its exchange if that was kept until now."""
        row, judged = booking.experience.row, booking.judged
        exchange = self._exchanges.pop(row, None)
        is_item = booking.relevant and not (judged and judged.reserved)
        if not (self._everything or (exchange is not None and is_item)):
            return
        url = booking.decision.url if exchange is None else exchange.url
        fields = {"failure": booking.kind}
        if judged is not None:
            fields = _verdict(judged)
        if row in self._again:
            fields["again"] = "true"
        if exchange is not None and not self._everything:
            self._put(exchange)
        about = None if exchange is None else exchange.id
        self.writer.put(partial(note_record, url, fields, about, datetime.now(UTC)))

    def engine_stopped(self) -> None:
        self.writer.close()
        self._check()
        stats = self._crawler.stats
        stats.set_value("tres/warc/bytes", self.writer.size)
        stats.set_value("tres/warc/left_out", self.writer.left_out)
        logger.info("Archived %.1f MB in %s", self.writer.size / 1e6, self.writer.path)

    def _put(self, exchange: Exchange) -> None:
        self._check()
        self.writer.put(partial(exchange_records, exchange), len(exchange.body))
        self._crawler.stats.inc_value("tres/warc/responses")

    def _check(self) -> None:
        if self.writer.error is None or self._failed:
            return
        self._failed = True
        logger.error(
            "%s cannot be written (%s): the crawl stops; what is written can be read",
            self.writer.path,
            plainly(self.writer.error, named=True),
        )
        deferred_from_coro(self._crawler.engine.close_spider_async(reason=ARCHIVE_FAILED))


def _verdict(judged: Judged) -> dict[str, str]:
    fields = {
        "relevant": str(judged.on_topic).lower(),
        "probability": f"{judged.probability:.4f}",
        "duplicate": str(judged.is_copy).lower(),
        "language": judged.page.language,
        "depth": str(judged.depth),
        "via": judged.path[-2] if len(judged.path) > 1 else "",
    }
    return {name: value for name, value in fields.items() if value}


def _facts(crawler: Crawler, config: Config) -> dict[str, str]:
    """Return the fields of the record that begins the file."""
    offline_web = crawler.get_extension(OfflineWeb)
    seeds = config.seed or (offline_web.seeds if offline_web is not None else ())
    return {
        "software": "tres-scrapy",
        "format": "WARC File Format 1.1",
        "http-header-user-agent": str(crawler.settings["USER_AGENT"]),
        "robots": "obeyed" if crawler.settings.getbool("ROBOTSTXT_OBEY") else "ignored",
        "topic": str(config.topic),
        "policy": config.policy,
        "seeds": " ".join(seeds[:MOST_SEEDS]),
    }


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
