from http.client import HTTPConnection
from urllib.parse import urlsplit

from scrapy import signals
from scrapy.dupefilters import RFPDupeFilter
from scrapy.extensions.feedexport import BlockingFeedStorage


class Taste:
    """A downloader middleware."""

    def process_response(self, request, response):
        response.flags.append("tasted")
        return response


class Source:
    """A spider middleware."""

    async def process_spider_output(self, response, result):
        async for output in result:
            yield output | {"source": response.url} if isinstance(output, dict) else output


class Shout:
    """A pipeline."""

    def process_item(self, item):
        return item | {"note": item["note"].upper()} if "note" in item else item


class Guests:
    """An extension that listens to signals."""

    def __init__(self, stats):
        self.stats = stats

    @classmethod
    def from_crawler(cls, crawler):
        guests = cls(crawler.stats)
        crawler.signals.connect(guests.item_scraped, signal=signals.item_scraped)
        crawler.signals.connect(guests.spider_closed, signal=signals.spider_closed)
        return guests

    def item_scraped(self):
        self.stats.inc_value("kitchen/served")

    def spider_closed(self, reason):
        self.stats.set_value("kitchen/closed", reason)


class OneOfEachPath(RFPDupeFilter):
    """A filter of duplicates that ignores a session in the query."""

    def request_seen(self, request):
        return super().request_seen(request.replace(url=request.url.partition("?session=")[0]))


class Bucket(BlockingFeedStorage):
    """A feed storage that uploads the feed to the server named by the bucket."""

    def __init__(self, uri, *, feed_options=None):
        self.place = urlsplit(uri)

    def _store_in_thread(self, file):
        file.seek(0)
        connection = HTTPConnection(self.place.netloc)
        connection.request("PUT", self.place.path, file.read())
        connection.getresponse().read()
        connection.close()
        file.close()
