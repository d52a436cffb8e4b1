BOT_NAME = "kitchen"
SPIDER_MODULES = ["kitchen.spiders"]
USER_AGENT = "kitchen (+https://example.org)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 4

SPIDER_MIDDLEWARES = {"kitchen.components.Source": 500}
DOWNLOADER_MIDDLEWARES = {"kitchen.components.Taste": 500}
ITEM_PIPELINES = {"kitchen.components.Shout": 300}
EXTENSIONS = {"kitchen.components.Guests": 0}
DUPEFILTER_CLASS = "kitchen.components.OneOfEachPath"
FEED_STORAGES = {"s3": "kitchen.components.Bucket"}

# The line with which TRES orders the requests of this project's spiders, and their topic.
ADDONS = {"tres_scrapy.addon.TresAddon": 100}
TRES_TOPIC = "food"
