"""The extension that keeps `spider.state` in JOBDIR as JSON: Scrapy's keeps a pickle."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final, Self

from scrapy import Spider, signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured
from scrapy.extensions.spiderstate import SpiderState
from scrapy.utils.conf import build_component_list
from scrapy.utils.misc import load_object

from tres_scrapy.url.whole_file import whole_file

FILE: Final = "spider.state.json"

logger = logging.getLogger(__name__)


class JsonSpiderState:
    """Gives the spider the `state` that the last crawl in the same JOBDIR left.

    A value that JSON cannot hold is left out when the crawl ends; the log names its key.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        jobdir = crawler.settings["JOBDIR"]
        if not jobdir or _has_scrapys(crawler):
            raise NotConfigured
        extension = cls(Path(jobdir, FILE))
        crawler.signals.connect(extension.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(extension.spider_closed, signal=signals.spider_closed)
        return extension

    def spider_opened(self, spider: Spider) -> None:
        state: dict[str, Any] = {}
        if self._path.exists():
            try:
                state = dict(json.loads(self._path.read_text(encoding="utf-8")))
            except (OSError, TypeError, ValueError) as error:
                logger.error("spider.state is empty, %s cannot be read: %s", self._path, error)
        spider.state = state  # type: ignore[attr-defined]

    def spider_closed(self, spider: Spider) -> None:
        state = getattr(spider, "state", {})
        kept = {key: value for key, value in state.items() if _is_json(key, value)}
        if lost := [repr(key) for key in state if key not in kept]:
            logger.warning("JSON cannot hold these values of spider.state: %s", ", ".join(lost))
        if kept or self._path.exists():
            with whole_file(self._path) as file:
                file.write(json.dumps(kept).encode())


def _is_json(key: object, value: object) -> bool:
    try:
        return bool(json.loads(json.dumps({key: value})) == {key: value})
    except (TypeError, ValueError):
        return False


def _has_scrapys(crawler: Crawler) -> bool:
    """Return whether the project has turned Scrapy's extension on itself."""
    components = crawler.settings.get_component_priority_dict_with_base("EXTENSIONS")
    return any(load_object(each) is SpiderState for each in build_component_list(components))
