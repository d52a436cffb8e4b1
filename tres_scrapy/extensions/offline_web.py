"""The extension that starts an offline web for the crawl and logs what that web counted."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
from typing import Any, Self

from scrapy import signals
from scrapy.crawler import Crawler
from scrapy.exceptions import NotConfigured

from tres_scrapy.config.config import Config
from tres_scrapy.extensions.learner import Learner
from tres_scrapy.policies.assembly import require_packs

logger = logging.getLogger(__name__)


class OfflineWebError(RuntimeError):
    """Raised with a one-line reason when the offline web does not start."""


class OfflineWeb:
    """An offline web in a separate process, the proxy for every request of the crawl."""

    def __init__(self, command: list[str], crawler: Crawler) -> None:
        self._crawler = crawler
        self._stats = crawler.stats
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the server's
        # In its own session: else Ctrl-C would end the web before the crawl.
        self._server = subprocess.Popen(  # noqa: S603 - our own module, no shell
            [sys.executable, "-m", "tres_scrapy.webs.server", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
            # the same import path as here: a deployed egg is not in PYTHONPATH
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        started = self._read()
        self.proxy = f"http://127.0.0.1:{started['port']}"
        self.seeds: tuple[str, ...] = tuple(started["seeds"])
        topics = Config.of(crawler.settings).topics
        if len(topics) > 1:
            logger.info("The offline web: its labels are those of %s alone", topics[0])
        for note in started["notes"]:
            logger.info("The offline web: %s", note)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        config = Config.of(crawler.settings)
        if config.web.kind is None:
            raise NotConfigured
        if config.web.kind != "changing" and config.words.file is None:
            require_packs(config)
        web = cls(_command(config), crawler)
        crawler.signals.connect(web.spider_closed, signal=signals.spider_closed)
        return web

    def spider_closed(self) -> None:
        """Stop the web and log its own count of the crawl, by true labels."""
        if self._server.stdin is not None:
            self._server.stdin.close()
        count = self._read()
        self._server.wait()
        for name in ("pages", "relevant", "harvest", "domains"):
            self._stats.set_value(f"tres/web/{name}", count[name])
        if unrecorded := count["by_kind"].get("unrecorded"):
            self._stats.set_value("tres/web/unrecorded", unrecorded)
            logger.info("%d of the requested URLs are not in the recording", unrecorded)
        if not count["pages"]:
            return
        learner = self._crawler.get_extension(Learner)
        is_resumed = learner is not None and learner.crawl.pages > count["pages"]
        logger.info(
            "By the web's true labels: %d pages, %d relevant, harvest rate %.4f, "
            "%d relevant domains%s",
            count["pages"],
            count["relevant"],
            count["harvest"],
            count["domains"],
            ", since this start" if is_resumed else "",
        )

    def _read(self) -> dict[str, Any]:
        """Return the next line of the server, parsed; raise OfflineWebError if the server ended."""
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            self._server.wait()
            self._errors.seek(0)
            said = self._errors.read().strip().splitlines() or ["it ended without a message"]
            raise OfflineWebError(f"the offline web does not run: {said[-1]}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _command(config: Config) -> list[str]:
    """Return the command-line arguments for the web server."""
    web = config.web
    command = [str(web.kind), "--port", str(web.port)]
    if config.topics:
        command += ["--topic", config.topics[0]]
    if web.kind in {"synthetic", "deep", "changing"}:
        command += ["--seed", str(web.seed)]
    if web.kind == "changing":
        command += ["--pages", str(web.pages), "--day", str(web.day)]
    files = {"--data": web.data, "--labels": web.labels, "--log": web.log}
    for option, path in files.items():
        command += [] if path is None else [option, str(path)]
    return command
