"""The spider `tres`: from one seed to the relevant pages of a topic."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from tres_scrapy.config.config import Config
from tres_scrapy.config.option import Options, apply_arguments
from tres_scrapy.downloader.request import LEASE, RENDERED, VISIT, crawls
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.items import RelevantPage, item_class
from tres_scrapy.rights.signal import as_items
from tres_scrapy.topic.pack import Judged
from tres_scrapy.url.canonical import domain_of
from tres_scrapy.url.message import CREDENTIALS


class TresSpider(Spider):
    """Follows every link through the frontier and yields each relevant page.

    Each argument `-a name=value` is the setting TRES_NAME.
    """

    name = "tres"
    follow_every_link = True
    options: ClassVar[tuple[type[Options], ...]] = (Config,)
    _item: type[RelevantPage] | None = None  # with the fields that this crawl was asked for

    @classmethod
    def from_crawler(cls, crawler: Crawler, *args: Any, **kwargs: Any) -> Self:
        if not crawls(crawler):  # `scrapy shell --spider tres` needs no topic
            return super().from_crawler(crawler, *args, **kwargs)
        known = [each for owner in cls.options for each in owner.declared().values()]
        rest = apply_arguments(crawler.settings, kwargs, known)
        Config.of(crawler.settings).require_seed()
        return super().from_crawler(crawler, *args, **rest)

    async def start(self) -> AsyncIterator[Any]:
        config = Config.of(self.settings)
        seeds = config.seed
        offline_web = self.crawler.get_extension(OfflineWeb)
        if not seeds and offline_web is not None:
            seeds = offline_web.seeds
        for url in seeds:
            yield Request(config.web.spoken(CREDENTIALS.sub(r"\1", url)))

    @cached_property
    def session(self) -> CrawlSession:
        """The session of the crawl."""
        return CrawlSession.of(self.crawler)

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        judged: Judged | None = response.meta.get(VISIT)
        if judged is None or not judged.relevant or judged.reserved:
            return
        session = self.session
        decision = session.crawl.decision_of(response.meta[LEASE])
        more: dict[str, Any] = {"scores": dict(judged.scores)} if len(judged.scores) > 1 else {}
        if self._item is None:
            fields = Config.of(self.settings).output.fields
            self._item = item_class((*fields, *more))
        yield self._item(
            url=response.meta.get("redirect_urls", [response.url])[0],
            final_url=response.url,
            title=judged.page.title,
            text=judged.page.text,
            language=judged.page.language,
            probability=judged.probability,
            depth=judged.depth,
            path=[*judged.path],
            anchor=judged.anchor,
            q_value=decision.q_value,
            leaf=decision.leaf,
            fetched_at=datetime.now(UTC).isoformat(),
            status=response.status,
            why=session.reasons.why(decision),
            domain=domain_of(response.url),
            rendered=RENDERED in response.flags,
            content_type=judged.page.content_type,
            rights=as_items(judged.page.rights),
            **dict(judged.content),
            **more,
        )
