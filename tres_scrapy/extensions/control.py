"""What can be asked of a crawl while it runs: to pause, to stop, a seed more, another MAX."""

from __future__ import annotations

import logging
from typing import Final
from urllib.parse import urlsplit

import numpy as np
from scrapy import Request, Spider
from scrapy.core.engine import ExecutionEngine
from scrapy.crawler import Crawler
from scrapy.utils.defer import deferred_from_coro

from tres_scrapy.config.cap import Cap
from tres_scrapy.config.config import Config
from tres_scrapy.config.parser import seeds
from tres_scrapy.downloader.request import SAMPLE
from tres_scrapy.extensions.learner import Learner
from tres_scrapy.scheduler import TreeFrontierScheduler
from tres_scrapy.url.public_address import may_be_public

LONGEST: Final = 8_000  # characters of what is typed
RUNNING, PAUSED, ENDING = "running", "paused", "ending"

logger = logging.getLogger(__name__)


class ControlError(RuntimeError):
    """Says in one line why something cannot be had and what to do."""


class Control:
    """Steers a crawl from the reactor's thread; each method returns what it has done in a sentence.

    ControlError: it cannot be done.
    """

    def __init__(self, crawler: Crawler, learner: Learner) -> None:
        self._crawler = crawler
        self._learner = learner
        self._ending = False

    @property
    def state(self) -> str:
        """RUNNING, PAUSED or ENDING."""
        if self._ending or not self._crawler.crawling:
            return ENDING
        return PAUSED if self._engine.paused else RUNNING

    def pause(self) -> str:
        """Hand out no more requests; those under way are finished."""
        self._require(RUNNING)
        self._engine.pause()
        return self._said("Paused: no more requests go out, and those under way are finished")

    def resume(self) -> str:
        """Hand out requests again, at once."""
        self._require(PAUSED)
        self._engine.unpause()
        if isinstance(scheduler := self._engine.scheduler, TreeFrontierScheduler):
            scheduler.wake()
        return self._said("Resumed")

    def stop(self) -> str:
        """End the crawl as Ctrl-C does."""
        self._require(RUNNING, PAUSED)
        self._ending = True
        deferred_from_coro(self._crawler.stop_async())
        return self._said("Stopping: requests under way are finished and all is written")

    def add_seed(self, text: str) -> str:
        """Put seeds, as -a seed= takes them but for files, before all else in the frontier."""
        self._require(RUNNING, PAUSED)
        if type(self._spider).parse is Spider.parse:
            raise ControlError(f"The spider {self._spider.name!r} has no parse() for a seed's page")
        urls = self._checked_seeds(text)
        for url in urls:
            request = Request(url)
            self._engine.crawl(request)
            if SAMPLE not in request.meta:
                raise ControlError(f"{url} does not fit: the frontier is full")
        if self._learner.job is not None and not self._learner.job.seed(self._learner.crawl):
            raise ControlError("JOBDIR cannot be written: the crawl stops")
        return self._said(f"Next: {', '.join(urls)}")

    def change_max(self, text: str) -> str:
        """Let MAX be 10, 5_2 or none from the next choice on; dropped samples come back."""
        self._require(RUNNING, PAUSED)
        crawl, job = self._learner.crawl, self._learner.job
        try:
            cap = Cap.parse(_short(text))
        except ValueError as error:
            raise ControlError(f"MAX {text!r} {error}") from None
        if cap is not None and cap.first != cap.last and crawl.limit is None:
            raise ControlError(
                f"MAX {cap} falls with the share of pages done, and this crawl has no -a pages="
            )
        follows_all = getattr(self._spider, "follow_every_link", False)
        rows = crawl.change_cap(cap, None if follows_all else self._learner.requests)
        if job is not None and not job.note_cap(cap):
            raise ControlError("JOBDIR cannot be written: the crawl stops")
        if isinstance(scheduler := self._engine.scheduler, TreeFrontierScheduler):
            scheduler.wake()
        back = f"; back in the frontier: {len(rows):,} links" if len(rows) else ""
        return self._said(f"MAX is {'none' if cap is None else cap} from now on{back}")

    def _checked_seeds(self, text: str) -> tuple[str, ...]:
        """Return the seeds of a text, all of which can be fetched."""
        if _short(text).lstrip().startswith("@"):
            raise ControlError("A file of seeds is read at the start only: -a seed=@FILE")
        try:
            urls = seeds(text)
        except ValueError as error:
            raise ControlError(f"A seed {error}") from None
        is_public = not Config.of(self._crawler.settings).download.private_addresses
        crawl = self._learner.crawl
        if crawl.finished:
            raise ControlError(f"All {crawl.limit:,} pages are fetched")
        for url in urls:
            host = urlsplit(url).hostname or ""
            if is_public and not may_be_public(host):
                raise ControlError(
                    f"{host} is not on the public internet; to allow it, start the crawl with "
                    "-a private_addresses=1"
                )
            if crawl.store.is_closed(url):
                raise ControlError(f"{url} has been fetched before, or is being fetched")
            domain = crawl.store.domain_of(url)
            if crawl.store.ledger.exhausted(np.array([domain]))[0]:
                name = crawl.store.ledger.names[domain]
                raise ControlError(f"{name} has given MAX pages or fails: nothing more is fetched")
        return urls

    @property
    def _engine(self) -> ExecutionEngine:
        assert self._crawler.engine is not None
        return self._crawler.engine

    @property
    def _spider(self) -> Spider:
        assert self._crawler.spider is not None
        return self._crawler.spider

    def _require(self, *states: str) -> None:
        if self.state not in states:
            raise ControlError(f"The crawl is {self.state}")

    def _said(self, what: str) -> str:
        logger.info("Asked from the live page: %s", what)
        return f"{what}."


def _short(text: str) -> str:
    if len(text) > LONGEST:
        raise ControlError(f"Too long: {LONGEST:,} characters at most")
    return text
