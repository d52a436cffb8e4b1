"""The pipeline of `scrapy crawl refresh`: it writes a line for each visit, and new links."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, TextIO

from scrapy.crawler import Crawler

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import named
from tres_scrapy.refresh.settings import RefreshConfig
from tres_scrapy.refresh.visit import VisitItem
from tres_scrapy.url.message import plainly
from tres_scrapy.url.whole_file import drop_torn_line


class RefreshPipeline:
    """Appends each visit to a JSON lines file and new links to a list of URLs."""

    def __init__(self, path: Path, found: Path | None) -> None:
        self._path, self._found_path = path, found
        self._file: TextIO | None = None
        self._found: TextIO | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = RefreshConfig.of(crawler.settings)
        pipeline = cls(config.beside(config.output, "jsonl"), config.found)
        pipeline.open()
        return pipeline

    def open(self) -> None:
        """Open the files; raise ConfigError if they cannot be written."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            drop_torn_line(self._path)
            self._file = self._path.open("a", encoding="utf-8")
            if self._found_path is not None:
                self._found = self._found_path.open("a", encoding="utf-8")
        except OSError as error:
            name = named("TRES_REFRESH_OUTPUT")
            raise ConfigError(f"{name} cannot be written: {plainly(error)}") from None

    def close_spider(self) -> None:
        for file in (self._file, self._found):
            if file is not None:
                file.close()

    def process_item(self, item: Any) -> Any:
        if not isinstance(item, VisitItem) or self._file is None:
            return item
        if self._found is not None and item.found:
            self._found.write("".join(f"{url}\n" for url in item.found))
            self._found.flush()
        self._file.write(json.dumps(asdict(item), ensure_ascii=False) + "\n")
        self._file.flush()
        return item
