"""Crawl the ordinary spiders one after another in one process, with or without the add-on.

    python tests/ordinary/ordinary_run.py {plain,addon} ADDRESS OUTPUT [NAME ...]

The port of the web is in the environment variable ORDINARY_PORT; ORDINARY_LOG=1 shows the log.
OUTPUT gets one JSON object: the runs of each spider by its name, and the files that it left.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import Any, ClassVar

from itemadapter import ItemAdapter
from ordinary_spiders import SLOW, SPIDERS
from scrapy import signals
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.resolver import CachingThreadedResolver
from scrapy.utils.defer import deferred_from_coro
from scrapy.utils.log import configure_logging
from scrapy.utils.reactor import install_reactor
from twisted.internet import defer, task
from twisted.internet.error import DNSLookupError

from tres_scrapy.extensions import session
from tres_scrapy.topic.judge import Source
from tres_scrapy.topic.judge_process import Worker
from tres_scrapy.topic.learning_judge import LearningTask
from tres_scrapy.topic.pack import Judged

MODELS = Path(__file__).parents[2] / "models"
LONGEST = 60.0  # seconds of one crawl
PATIENCE = 120.0  # of a slow spider
COMMON = {
    "USER_AGENT": "ordinary",
    "LOG_LEVEL": "INFO",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 5,
    "AUTOTHROTTLE_START_DELAY": 0.1,
}
ADDON = {
    "ADDONS": {"tres_scrapy.addon.TresAddon": 100},
    "TRES_TOPIC": "food",
    "TRES_MODELS": str(MODELS),
    "TRES_PRIVATE_ADDRESSES": "1",
    "TRES_RECORD": "0",
    "TRES_REST": "0.05",  # a host that fails rests 15 s otherwise
}
STATS = (
    *("item_scraped_count", "item_dropped_count", "item_dropped_reasons_count/*"),
    *("downloader/request_*", "downloader/response_count", "downloader/response_status_count/*"),
    *("downloader/exception_count", "downloader/exception_type_count/*", "response_received_count"),
    *("retry/*", "dupefilter/*", "httperror/*", "offsite/*", "urllength/*", "robotstxt/*"),
    *("request_depth_*", "log_count/ERROR", "log_count/CRITICAL", "spider_exceptions/*"),
    *("file_count", "file_status_count/*", "image_count", "httpcache/*", "httpcompression/*"),
    *("finish_reason", "feedexport/*", "start_requests/*", "own/*"),
)


class LocalResolver(CachingThreadedResolver):
    """Resolves each name below .test to the address of the web, but names that start `nowhere`."""

    address = ""

    def getHostByName(self, name: str, timeout: Any = ()) -> defer.Deferred[str]:  # noqa: N802
        if name.startswith("nowhere."):
            return defer.fail(DNSLookupError(f"no such host: {name}"))
        return defer.succeed(self.address if name.endswith(".test") else name)


class Errors(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        cause = ""
        if record.exc_info and record.exc_info[1] is not None:
            cause = "".join(traceback.format_exception(record.exc_info[1])[-2:])
        self.said.append(f"{record.getMessage()[:300]} {cause[-300:]}")


class SharedWorker:
    """Judges pages for all crawls in one process: it takes longer to start than most crawls."""

    _workers: ClassVar[dict[LearningTask, Worker]] = {}
    _lock = Lock()  # a crawl that has ended may have a page left

    def __init__(self, task: LearningTask) -> None:
        if not task.asks:  # it learns nothing
            task = replace(task, folder=Path("output"))
        if task not in self._workers:
            with chdir(MODELS):  # the folder of a spider is removed
                self._workers[task] = Worker(task)
            self._workers[task].wait()
        self._worker = self._workers[task]

    def __call__(self, sources: Sequence[Source]) -> list[Judged]:
        with self._lock:
            return self._worker(sources)

    def wait(self) -> None:
        pass

    def close(self) -> None:
        pass


async def crawl(
    runner: AsyncCrawlerRunner, spider: type[Any], arguments: dict[str, str]
) -> dict[str, Any]:
    """Crawl once and return what a user of the spider sees."""
    items: list[Any] = []
    errors = Errors()
    logging.root.addHandler(errors)
    crawler = runner.create_crawler(spider)

    def keep(item: Any) -> None:
        items.append(json.loads(json.dumps(ItemAdapter(item).asdict(), default=repr)))

    crawler.signals.connect(keep, signals.item_scraped)
    started, raised, late = monotonic(), None, False
    crawling = asyncio.ensure_future(runner.crawl(crawler, **arguments))
    try:
        longest = PATIENCE if spider.name in SLOW else LONGEST
        await asyncio.wait_for(asyncio.shield(crawling), longest)
    except TimeoutError:
        late = True
        await crawler.stop_async()
        await asyncio.wait_for(crawling, LONGEST)
    except Exception as error:
        raised = f"{type(error).__name__}: {error}"
    finally:
        logging.root.removeHandler(errors)
    patterns = (*STATS, *spider.stats)
    stats = crawler.stats.get_stats() if crawler.stats is not None else {}
    return {
        "items": items,
        "stats": {
            name: value if isinstance(value, int | float) else str(value)
            for name, value in stats.items()
            if any(fnmatchcase(name, pattern) for pattern in patterns)
        },
        "raised": raised,
        "failed": bool(runner.bootstrap_failed),
        "late": late,
        "errors": errors.said,
        "seconds": round(monotonic() - started, 2),
    }


async def crawl_all(names: list[str], settings: dict[str, Any], output: Path) -> None:
    results = {}
    for name in names:
        spider = (SPIDERS | SLOW)[name]
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            runs = []
            for arguments in spider.arguments:
                runner = AsyncCrawlerRunner(settings)
                runs.append(await crawl(runner, spider, arguments))
            found = sorted({path for pattern in spider.files for path in Path().glob(pattern)})
            kept = [path for path in found if path.is_file()]
            files = {str(path): path.read_bytes().decode("latin-1") for path in kept}
        results[name] = {"runs": runs, "files": files}
        seconds = sum(run["seconds"] for run in runs)
        print(f"{name:28} {seconds:6.2f} s", file=sys.stderr, flush=True)
    output.write_text(json.dumps(results), encoding="utf-8")


def main(mode: str, address: str, output: str, *names: str) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        os.environ.pop(name, None)
    settings = dict(COMMON)
    if mode == "addon":
        settings |= ADDON
        session.Worker = SharedWorker
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    shown = bool(os.environ.get("ORDINARY_LOG"))
    configure_logging({"LOG_LEVEL": "INFO", "LOG_INSTALL_ROOT_HANDLER": shown})
    logging.root.setLevel(logging.INFO)
    LocalResolver.address = address
    path = Path(output).absolute()

    def start(reactor: Any) -> Any:
        reactor.installResolver(LocalResolver(reactor, 0, 5))
        return deferred_from_coro(crawl_all(list(names or SPIDERS), settings, path))

    task.react(start)


if __name__ == "__main__":
    main(*sys.argv[1:])
