"""A shard of a crawl as a Ray actor, which runs Scrapy in a thread."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from concurrent.futures import Future
from functools import partial
from typing import Any, Final

from tres_scrapy.cluster.actor import ANSWER, RayWire, insist, when_free
from tres_scrapy.cluster.coordinator import FAILED
from tres_scrapy.cluster.message import Receipt
from tres_scrapy.cluster.outbox import NumberedBatch
from tres_scrapy.cluster.plan import Plan
from tres_scrapy.cluster.record_join import Part, Position, read_part
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.snapshot import (
    OvertakenError,
    ShardSnapshots,
    SnapshotFolder,
    crawl_at,
)
from tres_scrapy.cluster.take_over import take_over
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError

OWNER: Final = 120.0  # seconds for the last owner of a shard, who may be cut off from us, to end
BY_USER: Final = "closespider_"  # finish reasons of limits that the user has set
THREADS: Final = 16  # calls at the same time

logger = logging.getLogger(__name__)


class ShardActor:
    """Runs the crawl of a shard in a thread, and takes the links that others send."""

    def __init__(self, plan: Plan, shard: int) -> None:
        self._given, self._plan = plan, plan
        self._number = shard
        self._shard: Any = None
        self._reactor: Any = None
        self._thread = threading.Thread(target=self._run, name=f"shard-{shard}", daemon=True)
        self._thread.start()

    def deliver(self, sender: int, after: int, batches: list[NumberedBatch]) -> Receipt:
        """Add the links of another shard, if all batches up to the number `after` are here."""
        if self._shard is None or not self._shard.is_open:
            raise ConnectionError(f"shard {self._number} is starting or ending")
        answer: Future[Receipt] = Future()
        self._reactor.callFromThread(self._receive, answer, sender, after, batches)
        return answer.result(timeout=ANSWER)

    def part(self, after: Position) -> Part | None:
        """Return what the record of the shard has after a position, None without a record."""
        path = self._plan.folder(self._number) / NAME
        return read_part(path, after) if path.exists() else None

    def has_ended(self) -> bool:
        """Return whether the crawl of the shard is over."""
        return not self._thread.is_alive()

    def _receive(
        self, answer: Future[Receipt], sender: int, after: int, batches: list[NumberedBatch]
    ) -> None:
        try:
            answer.set_result(self._shard.receive(sender, after, batches))
        except Exception as error:
            answer.set_exception(error)

    def _run(self) -> None:
        """Crawl, and report how it ended if the coordinator did not end it."""
        try:
            self._plan = self._given.here()
            snapshots = self._open_snapshots() if self._plan.snapshots else None
            epoch = snapshots.epoch if snapshots else insist("begin", self._number)
            reason = self._crawl(epoch, snapshots)
        except OvertakenError as error:
            insist("overtaken", self._number, error.epoch)
            return
        except Exception as error:
            logger.exception("Shard %d cannot run", self._number)
            insist("end", FAILED, f"shard {self._number}: {error or type(error).__name__}")
            return
        if reason is not None and reason.startswith(BY_USER):
            insist("end", reason)
        elif reason is not None:
            log = self._plan.log(f"shard-{self._number}")
            insist("end", FAILED, f"shard {self._number} ended ({reason}): see {log}")
        if snapshots is not None and (snapshots.is_overtaken or not self._shard.is_replaced):
            try:
                snapshots.finish(self._plan.run)
            except OvertakenError as error:
                insist("overtaken", self._number, error.epoch)
            except Exception as error:  # the disk, the storage: the driver says what is missing
                logger.error("The last snapshot failed: %s", error)

    def _open_snapshots(self) -> ShardSnapshots:
        """Become the owner of the shard's snapshots, and bring its folder to the last state."""
        plan, number = self._plan, self._number
        if crawl_at(plan.snapshots).get("run") != plan.run:
            raise TresError(
                f"--snapshots {plan.snapshots} is another place on this node, or the crawl was "
                "started again elsewhere"
            )
        plan.log("any").parent.mkdir(parents=True, exist_ok=True)
        folder = plan.folder(number)
        if (folder / NAME).exists():
            when_free(partial(ShardJournal.check, folder, {}), OWNER)
        snapshots = SnapshotFolder(f"{plan.snapshots}/{folder.name}")
        take_over(folder, snapshots, partial(insist, "begin", number))
        return ShardSnapshots(folder, snapshots, plan.interval)

    def _crawl(self, epoch: int, snapshots: ShardSnapshots | None) -> str | None:
        """Crawl until the coordinator ends it; return why it ended if it ended by itself."""
        plan, number = self._plan, self._number
        if snapshots is None:
            plan.require_shared()
        when_free(partial(ShardJournal.check, plan.folder(number), {}), OWNER)
        asyncio.set_event_loop(asyncio.new_event_loop())
        # imported here: they load the reactor, which belongs to this thread
        from scrapy.crawler import AsyncCrawlerProcess  # noqa: PLC0415
        from scrapy.utils.project import get_project_settings  # noqa: PLC0415

        from tres_scrapy.cluster.shard import Shard  # noqa: PLC0415
        from tres_scrapy.spiders.tres import TresSpider  # noqa: PLC0415

        os.environ["SCRAPY_SETTINGS_MODULE"] = "tres_scrapy.settings"
        settings = get_project_settings()
        settings.setdict(plan.settings_of(number), priority="cmdline")
        process = AsyncCrawlerProcess(settings)
        crawler = process.create_crawler(TresSpider)
        shard = Shard(crawler, RayWire(number, epoch), number, plan.shards, snapshots)
        crawling = process.crawl(crawler, **plan.arguments_of(number))
        from twisted.internet import reactor  # noqa: PLC0415

        self._reactor, self._shard = reactor, shard
        process.start(install_signal_handlers=False)
        if crawling.done() and (error := crawling.exception()) is not None:
            raise error
        if shard.last is not None and not shard.is_replaced:
            RayWire(number, epoch).close(shard.last)
        return None if shard.is_ordered else str(crawler.stats.get_value("finish_reason"))
