"""The pipeline that writes relevant pages to a JSON lines file."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TextIO

from scrapy.crawler import Crawler

from tres_scrapy.config import Config, ConfigError
from tres_scrapy.items import RelevantPage

logger = logging.getLogger(__name__)


class JsonLinesPipeline:
    """Appends each relevant page to one file of the crawl and flushes it, page by page.

    Other items pass untouched; so do relevant pages, on to Scrapy's own feeds.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: TextIO | None = None
        self._written = 0

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.from_settings(crawler.settings)
        started = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")
        return cls(config.output or Path("output", f"{config.topic}-{started}.jsonl"))

    def open_spider(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"TRES_OUTPUT (-a output=) cannot be written: {error}") from None

    def close_spider(self) -> None:
        if self._file is None:
            return
        empty = not self._file.tell()
        self._file.close()
        if self._written:
            logger.info("Wrote %d relevant pages to %s", self._written, self.path)
        if empty:
            logger.info("No relevant page: %s is not written", self.path)
            self.path.unlink(missing_ok=True)  # a file for nothing only makes people look into it

    def process_item(self, item: Any) -> Any:
        if isinstance(item, RelevantPage) and self._file is not None:
            self._file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")
            self._file.flush()
            self._written += 1
        return item
