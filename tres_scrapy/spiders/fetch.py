"""The spider `tres-fetch`: fetches a list of URLs into a JSON lines file beside the list."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from scrapy import Request, Spider
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.exceptions import IgnoreRequest
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from scrapy.spidermiddlewares.httperror import HttpError
from tqdm import tqdm
from twisted.python.failure import Failure

from tres_scrapy.addon import TresAddon
from tres_scrapy.config.config import Config
from tres_scrapy.page.kind import is_pdf
from tres_scrapy.page.pdf_page import PDFS, DocumentError, read_document
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import whole_file

# These spiders fetch only the URLs that they are given.
SETTINGS: dict[str, Any] = {
    "ADDONS": {TresAddon: 100},
    "AUTOTHROTTLE_ENABLED": True,
    "AUTOTHROTTLE_START_DELAY": 1,
    "ITEM_PIPELINES": {},
    "LOG_LEVEL": "CRITICAL",
    "ROBOTSTXT_OBEY": True,
}
S = TypeVar("S", bound=Spider)
NO_ANSWERS: Mapping[str, Iterable[str]] = {}


def fetch_lists(
    selections: Iterable[str],
    settings: Settings,
    answered: Mapping[str, Iterable[str]] = NO_ANSWERS,
) -> list[str]:
    """Return the selections, each list of URLs replaced by the JSON lines file of its pages.

    A list is a .txt or .urls file of http(s) URLs, with comments after #. `answered` are the URLs
    of files of answers, which follow. Pages already in the file are not fetched again. Raise
    ValueError if a line of a list is not a URL, or if the fetch is interrupted. Can fetch only once
    in a process, because Scrapy runs only once.
    """
    selections = list(selections)
    lists = {text: urls for text in selections if (urls := read_urls(Path(text)))}
    lists |= {text: list(urls) for text, urls in answered.items()}
    files = {text: Path(text).with_suffix(".fetched.jsonl") for text in lists}
    missing: dict[str, list[Path]] = {}
    for text, urls in lists.items():
        fetched = _keep_pages(files[text])
        for url in urls:
            if url not in fetched:
                missing.setdefault(url, []).append(files[text])
    if missing:
        _fetch(missing, settings)
    return [str(files.get(text, text)) for text in (*selections, *answered)]


def read_urls(path: Path) -> list[str]:
    """Return the URLs of a list, each once; an empty list for a .txt file without URLs, a text.

    Raise TresError if a file has both URLs and other lines, or if an .urls file has no URLs.
    """
    if path.suffix not in {".txt", ".urls"} or not path.is_file():
        return []
    urls: dict[str, None] = {}
    other = ""
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if url := canonicalise(text):
                urls[url] = None
            else:
                other = other or f"line {number}: {text[:80]!r}"
    if other and (urls or path.suffix == ".urls"):
        raise TresError(
            f"{path}, {other} must be an http(s) URL or a comment after #, as in every list; if "
            "the file is a text, put it into a folder or save it as .html"
        )
    if not urls and path.suffix == ".urls":
        raise TresError(f"{path} must hold at least one http(s) URL")
    return list(urls)


class FetchSpider(Spider):
    """Fetches each URL and writes its HTML, the text of its PDF, or why that failed, to files."""

    has_frontier = False

    def __init__(self, wanted: dict[str, list[Path]]) -> None:
        super().__init__("tres-fetch")  # a class attribute `name` would list it in `scrapy crawl`
        self._wanted = wanted
        self._files: dict[Path, IO[str]] = {}
        self._progress = tqdm(total=len(wanted), desc="fetching", unit=" pages", disable=None)
        self.reason = ""

    async def start(self) -> AsyncIterator[Any]:
        for path in {path for paths in self._wanted.values() for path in paths}:
            self._files[path] = path.open("a", encoding="utf-8", buffering=1)  # a line at a time
        for url in self._wanted:
            arguments = {"asked": url}
            yield Request(url, errback=self.fail, cb_kwargs=arguments, dont_filter=True)

    def parse(self, response: Response, asked: str = "", **kwargs: Any) -> None:
        if isinstance(response, HtmlResponse):
            self._write(asked, status=response.status, html=response.text)
        elif is_pdf(response.body):
            try:
                page = read_document(PDFS(response.body), asked)
                self._write(asked, status=response.status, title=page.title, text=page.text)
            except DocumentError as error:
                fault = f"cannot be read as PDF: {error}"
                self._write(asked, status=response.status, error=fault)
        else:
            self._write(asked, status=response.status, error="no HTML and no PDF")

    def fail(self, failure: Failure) -> None:
        asked: str = failure.request.cb_kwargs["asked"]  # type: ignore[attr-defined]
        error = failure.value
        if isinstance(error, HttpError):
            self._write(asked, status=error.response.status, error=f"HTTP {error.response.status}")
        else:
            reason = str(error) if isinstance(error, IgnoreRequest) else type(error).__name__
            self._write(asked, error=reason)

    def closed(self, reason: str) -> None:
        self.reason = reason
        self._progress.close()
        PDFS.close()
        for file in self._files.values():
            file.close()

    def _write(self, url: str, **facts: str | int) -> None:
        for path in self._wanted[url]:
            self._files[path].write(json.dumps({"url": url} | facts) + "\n")
        self._progress.update()


def run_politely(kind: type[S], settings: Settings, **arguments: Any) -> S:
    """Run a spider that fetches single URLs, as politely as a crawl; return it when it has closed.

    It has no frontier and no pipelines. Can run only once in a process, as Scrapy does.
    """
    settings = settings.copy()
    for name, value in SETTINGS.items():
        settings.set(name, value, "project")  # a lower priority than the user's -s
    if Config.of(settings).web.kind is not None:  # it needs no politeness
        settings.set("AUTOTHROTTLE_ENABLED", False, "project")
    process = AsyncCrawlerProcess(settings)
    crawler = process.create_crawler(kind)
    crawl = process.crawl(crawler, **arguments)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        process.start()
    finally:
        for number, handler in handlers.items():  # Scrapy's have no effect any more
            signal.signal(number, handler)
    if crawl.done() and not crawl.cancelled() and (error := crawl.exception()) is not None:
        raise error
    spider = crawler.spider
    if not isinstance(spider, kind):
        raise TresError("fetching could not start")
    return spider


def _fetch(wanted: dict[str, list[Path]], settings: Settings) -> None:
    spider = run_politely(FetchSpider, settings, wanted=wanted)
    if spider.reason != "finished":
        msg = "fetching was interrupted: run the command again to fetch the missing pages"
        raise TresError(msg)


def _keep_pages(path: Path) -> set[str]:
    """Return the URLs whose pages are in a file; drop its failures, to try them again."""
    urls: set[str] = set()
    if not path.exists():
        return urls
    with whole_file(path) as kept, path.open("rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:  # incomplete: the process was killed while writing
                continue
            is_page = isinstance(record, dict) and not record.keys().isdisjoint(("html", "text"))
            if is_page and record["url"] not in urls:
                urls.add(record["url"])
                kept.write(line.rstrip() + b"\n")
    return urls
