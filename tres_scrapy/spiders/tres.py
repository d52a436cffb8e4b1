"""The spider `tres`: from one seed to the relevant pages of a topic."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cached_property
from typing import Any, ClassVar, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from tres_scrapy.config.config import Config
from tres_scrapy.config.option import Options, apply_arguments
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.downloader.request import RENDERED, VISIT, crawls
from tres_scrapy.extensions.offline_web import OfflineWeb
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.items import item_class
from tres_scrapy.url.domain import domain_of
from tres_scrapy.url.message import CREDENTIALS


class TresSpider(Spider):
    """Follows every link through the frontier and yields each relevant page.

    Each argument `-a name=value` is the setting TRES_NAME.
    """

    name = "tres"
    follow_every_link = True
    options: ClassVar[tuple[type[Options], ...]] = (Config,)

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

    async def parse(self, response: Response, **kwargs: Any) -> AsyncIterator[Any]:
        visit: Visit | None = response.meta.get(VISIT)
        if visit is None or not visit.relevant:
            return
        session = CrawlSession.of(self.crawler)
        scores = visit.judged.judgement.scores
        more: dict[str, Any] = {"scores": dict(scores)} if scores else {}
        item = item_class((*self._fields, *more))
        yield item(
            url=response.meta.get("redirect_urls", [response.url])[0],
            final_url=response.url,
            title=visit.judged.page.title,
            text=visit.judged.page.text,
            language=visit.judged.page.language,
            probability=visit.judged.judgement.probability,
            depth=visit.depth,
            path=visit.path,
            anchor=visit.anchor,
            q_value=visit.decision.q_value,
            leaf=visit.decision.leaf,
            fetched_at=visit.fetched_at.isoformat(),
            status=response.status,
            why=session.reasons.why(visit.decision),
            domain=domain_of(response.url, private=session.crawl.store.ledger.limits.psl_private),
            rendered=RENDERED in response.flags,
            content_type=visit.judged.page.content_type,
            **dict(visit.judged.content),
            **more,
        )

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        """The further fields of items; reading all settings for each item would take 0.2 ms."""
        return Config.of(self.settings).output.fields
