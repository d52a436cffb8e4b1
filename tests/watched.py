"""A crawl that notes how long its reactor works on one thing: `python watched.py FILE ...`.

FILE receives the most seconds of the processor that the reactor's thread took between two looks,
50 ms apart; the rest are arguments of `scrapy`. Seconds of the processor do not depend on what else
the machine does.
"""

import asyncio
import sys
import time
from pathlib import Path

from scrapy import signals
from scrapy.cmdline import execute

from tres_scrapy import settings

TICK = 0.05  # seconds


class Watch:
    def __init__(self):
        self.longest, self.task = 0.0, None

    @classmethod
    def from_crawler(cls, crawler):
        watch = cls()
        crawler.signals.connect(watch.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(watch.engine_stopped, signal=signals.engine_stopped)
        return watch

    def spider_opened(self):
        self.task = asyncio.get_running_loop().create_task(self.look())

    async def look(self):
        while True:
            before = time.thread_time()
            await asyncio.sleep(TICK)
            self.longest = max(self.longest, time.thread_time() - before)

    def engine_stopped(self):
        Path(sys.argv[1]).write_text(str(self.longest), encoding="utf-8")


if __name__ == "__main__":
    settings.EXTENSIONS |= {Watch: 1}
    execute(["scrapy", *sys.argv[2:]])
