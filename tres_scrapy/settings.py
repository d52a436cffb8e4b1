"""The project's Scrapy settings; those of TRES itself are in config/."""

from tres_scrapy.config.guest import places

BOT_NAME = "tres"
USER_AGENT = "tres-scrapy (focused crawler; no contact given)"
SPIDER_MODULES = ["tres_scrapy.spiders", *places("spiders")]
COMMANDS_MODULE = "tres_scrapy.spiders.crawl"
ADDONS = {"tres_scrapy.addon.TresAddon": 100}
FEED_EXPORTERS = {"parquet": "tres_scrapy.export.parquet.ParquetItemExporter"}

# Politeness
ROBOTSTXT_OBEY = True
DOWNLOAD_DELAY = 1.0
DOWNLOAD_DELAY_JITTER = 0.0  # the frontier itself waits until a host is free
# CONCURRENT_REQUESTS is Scrapy's 16: a value here would win over TRES_PRESET
CONCURRENT_REQUESTS_PER_DOMAIN = 1
CONCURRENT_ITEMS = 1  # per page: a page has one item at most
COOKIES_ENABLED = False

# Limits: a page is text, and one slow host must not hold a request for minutes
DOWNLOAD_TIMEOUT = 30
DNS_TIMEOUT = 20  # seconds; runs before DOWNLOAD_TIMEOUT starts
TWISTED_DNS_RESOLVER = "tres_scrapy.downloader.resolver.PromptResolver"  # Ctrl-C waits for no name
REACTOR_THREADPOOL_MAXSIZE = 20  # name lookups: with 10, ten dead hosts would block all
DOWNLOAD_MAXSIZE = 8 * 1024 * 1024
DOWNLOAD_WARNSIZE = 0
RETRY_TIMES = 1  # of requests outside the frontier: in it, hosts that fail rest
RETRY_GIVE_UP_LOG_LEVEL = "DEBUG"  # a failed page is normal; the stats count it
REDIRECT_MAX_TIMES = 10
DOWNLOAD_FAIL_ON_DATALOSS = False  # keep a page that is cut off, as a browser does
DOWNLOAD_HANDLERS = {
    "http": "tres_scrapy.downloader.handler.BoundedHandler",  # 256 KiB of headers at most
    "https": "tres_scrapy.downloader.handler.BoundedHandler",
}

# No open port for commands
TELNETCONSOLE_ENABLED = False
EXTENSIONS = {
    "scrapy.extensions.remote_control.RemoteControl": None,
    "scrapy.extensions.logstats.LogStats": None,  # the progress line says more
    "scrapy.extensions.spiderstate.SpiderState": None,  # it unpickles a file of JOBDIR
}

LOGSTATS_INTERVAL = 10.0  # seconds between two progress lines
LOG_LEVEL = "INFO"
