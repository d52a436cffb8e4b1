"""The pipeline of `scrapy crawl refresh`: a line for each visit, and the links that were found."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self, TextIO

from scrapy.crawler import Crawler

from tres_scrapy.config.config import ConfigError
from tres_scrapy.export.json_lines import mend
from tres_scrapy.refresh.errand import VisitItem
from tres_scrapy.refresh.settings import RefreshConfig


class RefreshPipeline:
    """Appends each visit to a JSON lines file, and links that are new to a list, one by one."""

    def __init__(self, path: Path, found: Path | None) -> None:
        self._path, self._found_path = path, found
        self._file: TextIO | None = None
        self._found: TextIO | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = RefreshConfig.from_settings(crawler.settings)
        pipeline = cls(config.beside(config.output, "jsonl"), config.found)
        pipeline.open()
        return pipeline

    def open(self) -> None:
        """Open the files; ConfigError: they cannot be written."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            mend(self._path)
            self._file = self._path.open("a", encoding="utf-8")
            if self._found_path is not None:
                self._found = self._found_path.open("a", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"TRES_REFRESH_OUTPUT cannot be written: {error}") from None

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


def written(path: Path) -> set[tuple[str, str]]:
    """Return URL and time of the visits in a file, as far as its lines are such."""
    visits: set[tuple[str, str]] = set()
    if path.exists():
        with path.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    row = json.loads(line)
                    visits.add((str(row["url"]), str(row["fetched_at"])))
                except (ValueError, KeyError, TypeError):  # a line of another program's
                    continue
    return visits
