from types import SimpleNamespace

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadTimeoutError
from scrapy.http import Response
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.test import get_crawler

from tres_scrapy.downloader.engine import SHUTDOWN, CrawlEndsError
from tres_scrapy.downloader.refusal import OtherRetries
from tres_scrapy.downloader.request import LEASE

URL = "http://a.test/"


@pytest.fixture
def retries():
    crawler = get_crawler(Spider)
    crawler.spider = crawler._create_spider("retrying")
    crawler.spider.follow_every_link = True
    crawler.engine = SimpleNamespace(_slot=SimpleNamespace(closing=None))
    return OtherRetries.from_crawler(crawler)


ROBOTS = {"callback": NO_CALLBACK, "meta": {"dont_obey_robotstxt": True}}


@pytest.mark.parametrize("ours", [{"meta": {LEASE: 1}}, ROBOTS])
def test_only_other_requests_are_retried(retries, ours):
    busy, image = Response(URL, 503), Request(URL, callback=NO_CALLBACK)
    for request, again in ((Request(URL, **ours), False), (Request(URL), True), (image, True)):
        assert (retries.process_response(request, busy) is not busy) is again
        assert bool(retries.process_exception(request, DownloadTimeoutError())) is again


def test_sample_of_own_spider_is_retried(retries):
    """Scrapy retries all requests of a project's own spider, robots.txt included."""
    retries.crawler.spider.follow_every_link = False
    sample = Request(URL, meta={LEASE: 1})
    assert retries.process_response(sample, Response(URL, 503)).meta["retry_times"] == 1
    assert retries.process_exception(Request(URL, **ROBOTS), DownloadTimeoutError())


def test_ending_crawl_sends_no_sample(retries):
    sample = Request(URL, meta={LEASE: 1})
    retries.process_request(sample)
    retries.crawler.engine._slot.closing = object()
    retries.process_request(Request(URL))
    with pytest.raises(CrawlEndsError) as caught:
        retries.process_request(sample)
    assert caught.value.kind == SHUTDOWN
