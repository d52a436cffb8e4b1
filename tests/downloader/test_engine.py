"""What a crawl that ends waits for."""

import asyncio

import pytest

from tres_scrapy.downloader import engine
from tres_scrapy.downloader.engine import SHUTDOWN, CrawlEndsError, before_end
from tres_scrapy.downloader.refusal import failure_of


@pytest.fixture(autouse=True)
def hurry(monkeypatch):
    monkeypatch.setattr(engine, "LOOK", 0.01)
    monkeypatch.setattr(engine, "LAST_WAIT", 0.05)


def test_result_is_returned():
    async def work():
        return 7

    assert asyncio.run(before_end(lambda: False, work())) == 7


@pytest.mark.parametrize("ends", [False, True])
def test_error_is_raised(ends):
    async def work():
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        asyncio.run(before_end(lambda: ends, work()))


def test_crawl_that_ends_waits_for_a_moment():
    async def work():
        await asyncio.sleep(0.02)
        return 7

    assert asyncio.run(before_end(lambda: True, work())) == 7


def test_work_without_end_is_cancelled_once_the_crawl_ends():
    ended, cancelled = [], []

    async def work():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def crawl():
        waiting = asyncio.ensure_future(before_end(lambda: bool(ended), work()))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        ended.append(True)
        with pytest.raises(CrawlEndsError) as caught:
            await waiting
        await asyncio.sleep(0)
        return caught.value

    error = asyncio.run(crawl())
    assert cancelled == [True]
    assert failure_of(error).kind == SHUTDOWN


def test_cancelling_the_wait_cancels_the_work():
    cancelled = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    async def crawl():
        waiting = asyncio.ensure_future(before_end(lambda: False, work()))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.sleep(0.01)

    asyncio.run(crawl())
    assert cancelled == [True]
