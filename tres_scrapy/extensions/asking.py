"""The extension that has a program answer the questions of a topic while the crawl runs."""

from __future__ import annotations

import logging
from math import ceil
from typing import Final, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure

from tres_scrapy.answerer.answer import AnswererError
from tres_scrapy.answerer.answerer import Answerer
from tres_scrapy.answerer.asking import AT_ONCE, Asking
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.crawl.crawl import Booking
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.extensions.topic_source import topic_folder
from tres_scrapy.url.message import TresError, plainly

FIRST: Final = 12  # pages before the first questions: the topic has learned from ten
GROWTH: Final = 1.5  # of the pages from some questions to the next, in a crawl without an end
LEAST_GROWTH: Final = 1.1  # in others
LAST: Final = 0.5  # share of all pages at which the last are asked: they know the topic best
PATIENCE: Final = 3  # failures in a row, after which the answerer is not asked any more

logger = logging.getLogger(__name__)


class AskAnswerer:
    """Asks the answerer of a crawl about five pages now and then; the crawl does not wait."""

    def __init__(
        self, crawler: Crawler, answerer: Answerer, most: int, pages: int | None = None
    ) -> None:
        self._crawler = crawler
        self._answerer = answerer
        self._most = most
        self._pages = pages
        self._asking: Asking | None = None
        self._recorder: Recorder | None = None
        self._next = float(FIRST)
        self._is_asked = False  # at this moment
        self._failures = 0  # in a row
        self._complaint = ""  # the last about a file of the topic
        self._is_closed = False

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        words = config.words
        if words.answerer is None:
            raise NotConfigured
        try:
            answerer = Answerer(words.answerer)
        except AnswererError as error:
            raise ConfigError(str(error)) from None
        extension = cls(crawler, answerer, words.answers_most, config.pages)
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        session = CrawlSession.of(self._crawler)
        folder = topic_folder(session.output, self._crawler.settings["JOBDIR"])
        self._recorder = self._crawler.get_extension(Recorder)
        record = None if self._recorder is None else self._recorder.path
        past = len(folder.read_answered())  # before the crawl was interrupted
        self._asking = Asking(folder, self._answerer, record, self._most - past)
        self._next = self._after(session.crawl.pages, self._most - past) if past else FIRST
        session.listeners.append(self.booked)

    def spider_closed(self, spider: Spider) -> None:
        self._is_closed = True
        self._answerer.close()

    def booked(self, booking: Booking) -> None:
        """Ask if it is time, no answers are awaited, and there are questions."""
        session, asking = CrawlSession.of(self._crawler), self._asking
        if self._is_asked or asking is None or session.crawl.pages < self._next:
            return
        self._next = self._after(session.crawl.pages, asking.left)
        if self._failures >= PATIENCE:
            return
        try:
            questions = asking.questions()
        except TresError as error:
            self._complain(error)
            return
        if not questions:
            return
        if self._recorder is not None:
            self._recorder.flush()
        self._is_asked = True
        deferToThread(asking.ask, questions).addCallbacks(self._say, self._fail)

    def _after(self, pages: int, left: int) -> float:
        """Return after how many pages to ask next, from the pages and questions left of now."""
        if self._pages is None:
            return pages * GROWTH
        rounds = max(1, ceil(left / AT_ONCE) - 1)
        wanted: float = (LAST * self._pages / max(1, pages)) ** (1 / rounds)
        return pages * max(LEAST_GROWTH, wanted)

    def _say(self, lines: list[str]) -> None:
        self._is_asked, self._failures = False, 0
        for line in lines:
            logger.info("Answerer: %s", line)

    def _fail(self, failure: Failure) -> None:
        self._is_asked = False
        if self._is_closed:
            return
        error = failure.value
        if isinstance(error, TresError) and not isinstance(error, AnswererError):
            self._complain(error)
            return
        self._failures += 1
        if not isinstance(error, AnswererError | OSError):
            logger.error("Bug in the asking of %s", self._answerer.name, exc_info=error)
            self._failures = PATIENCE
            return
        last = "; it is not asked any more" if self._failures == PATIENCE else ""
        logger.warning("%s%s", plainly(error), last)

    def _complain(self, error: TresError) -> None:
        """Say once what is wrong with a file of the topic: it may be corrected during the crawl."""
        if str(error) != self._complaint:
            logger.warning("Nothing is asked: %s", error)
        self._complaint = str(error)
