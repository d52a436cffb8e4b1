"""A foreign project that becomes a focused crawler by one line in ADDONS."""

import json

import pytest
from scrapy.core.scheduler import Scheduler
from scrapy.extensions.spiderstate import SpiderState
from scrapy.settings import Settings
from scrapy.utils.conf import build_component_list
from soup import FOOD

from tres_scrapy import settings as ours
from tres_scrapy.addon import LIMITS, TresAddon
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.scheduler import TreeFrontierScheduler

SETTINGS = """
SPIDER_MODULES = ["theirs.spiders"]
ADDONS = {"tres_scrapy.addon.TresAddon": 100}
ITEM_PIPELINES = {"theirs.pipelines.Shout": 300}
TRES_TOPIC = "food"
TRES_OUTPUT = "relevant.jsonl"
"""
SPIDER = """
from scrapy import Spider


class Theirs(Spider):
    name = "theirs"
    allowed_domains = ["a.test"]
    start_urls = ["http://a.test/"]

    def parse(self, response):
        yield {"url": response.url, "from": response.meta.get("from")}
        for href in response.css("a.follow::attr(href)").getall():
            yield response.follow(href, self.parse_next, meta={"from": response.url})

    def parse_next(self, response):
        yield from self.parse(response)
        if response.url.endswith("bad"):
            raise ValueError("a bug of theirs")
"""
PIPELINE = """
class Shout:
    def process_item(self, item):
        return item | {"shout": True}
"""


def project(tmp_path):
    """Write the project's files."""
    package = tmp_path / "theirs"
    package.mkdir()
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = theirs.settings\n")
    (package / "__init__.py").touch()
    (package / "settings.py").write_text(SETTINGS)
    (package / "spiders").mkdir()
    (package / "spiders" / "__init__.py").write_text(SPIDER)
    (package / "pipelines.py").write_text(PIPELINE)


def follow(*hrefs):
    return "".join(f'<a class="follow" href="{href}">bread</a> ' for href in hrefs)


@pytest.mark.long
def test_frontier_leads_a_foreign_spider(scrapy, tmp_path, pages):
    project(tmp_path)
    pages.add("http://a.test/", '<a class="follow" href="/2">bread</a> <a href="/3">no</a>')
    pages.add("http://a.test/2", '<a class="follow" href="/">home</a>')
    process = scrapy("crawl", "theirs", "-O", "feed.json", project=tmp_path, pages=pages)
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    assert json.loads((tmp_path / "feed.json").read_text()) == [
        {"url": "http://a.test/", "from": None, "shout": True},
        {"url": "http://a.test/2", "from": "http://a.test/", "shout": True},
        # Scrapy does not remember start_urls, so a link to one of them counts as new
        {"url": "http://a.test/", "from": "http://a.test/2", "shout": True},
    ]
    assert pages.fetched() == ["http://a.test/", "http://a.test/2", "http://a.test/"]
    assert process.stats["tres/pages"] == 2
    assert process.stats["finish_reason"] == "finished"


@pytest.mark.long
def test_foreign_links_keep_their_callbacks(scrapy, tmp_path, pages):
    project(tmp_path)
    urls = [f"http://a.test/{i}" for i in range(40)]
    pages.add("http://a.test/", follow(*urls, *urls, "/bad", "http://off.test/"))
    for url in urls:
        pages.add(url)
    pages.add("http://a.test/bad", follow("/after"))
    pages.add("http://a.test/after")
    process = scrapy("crawl", "theirs", "-O", "feed.json", project=tmp_path, pages=pages)
    assert process.returncode == 0, process.stderr
    expected = ["http://a.test/", *urls, "http://a.test/after", "http://a.test/bad"]
    assert sorted(pages.fetched()) == sorted(expected)
    items = json.loads((tmp_path / "feed.json").read_text())
    assert sorted(item["url"] for item in items) == sorted(expected)
    assert all(item["from"] for item in items if item["url"] != "http://a.test/")
    assert process.stats["tres/pages"] == 43
    assert "KeyError" not in process.stderr


@pytest.mark.parametrize("wanted", [False, True])
def test_code_of_others_stays_off(wanted):
    """SpiderState unpickles a file of JOBDIR; the other two listen for Python to execute."""
    names = ("REMOTE_CONTROL_ENABLED", "TELNETCONSOLE_ENABLED")
    settings = Settings(dict.fromkeys(names, True) | {"EXTENSIONS": {SpiderState: 0}})
    settings = settings if wanted else Settings()
    TresAddon().update_settings(settings)
    assert [settings.getbool(name) for name in names] == [wanted, wanted]
    extensions = settings.get_component_priority_dict_with_base("EXTENSIONS")
    assert (SpiderState in build_component_list(extensions)) == wanted


def test_own_limits_fill_the_gaps():
    settings = Settings()
    TresAddon().update_settings(settings)
    assert {name: settings[name] for name in LIMITS} == LIMITS
    assert settings.getdict("DOWNLOAD_HANDLERS") == ours.DOWNLOAD_HANDLERS
    own = {"DOWNLOAD_TIMEOUT": 7, "DOWNLOAD_HANDLERS": {"https": "theirs.Handler", "ftp": None}}
    settings = Settings(own)
    TresAddon().update_settings(settings)
    assert settings["DOWNLOAD_TIMEOUT"] == 7
    assert settings.getdict("DOWNLOAD_HANDLERS") == own["DOWNLOAD_HANDLERS"] | {
        "http": ours.DOWNLOAD_HANDLERS["http"]
    }


@pytest.mark.parametrize("scheduler", [Scheduler, "scrapy.core.scheduler.Scheduler"])
def test_foreign_scheduler_is_refused(scheduler):
    with pytest.raises(ConfigError, match=r"SCHEDULER .* TRES has its own scheduler; unset it"):
        TresAddon().update_settings(Settings({"SCHEDULER": scheduler}))
    settings = Settings({"SCHEDULER": TreeFrontierScheduler})
    TresAddon().update_settings(settings)
    assert settings["SCHEDULER"] is TreeFrontierScheduler


COUNTING = """
from scrapy import Spider


class Theirs(Spider):
    name = "theirs"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        visit = response.meta["tres_visit"]
        yield {"url": response.url, "is_page": visit is not None}
        for href in response.css("a::attr(href)").getall() if visit else ():
            yield response.follow(href)
"""


@pytest.mark.long
def test_callbacks_of_pages_are_as_many_as_asked_for(scrapy, tmp_path, pages):
    """Answers that are not pages reach the callback too, but do not count."""
    project(tmp_path)
    (tmp_path / "theirs" / "spiders" / "__init__.py").write_text(COUNTING)
    names = [f"/{number}" for number in range(40)]
    pages.add("http://a.test/", "".join(f'<a href="{name}">soup</a>' for name in names))
    for number, name in enumerate(names):
        missing = "<title>Page not found</title><p>Sorry.</p>"
        kind = "image/png" if number % 5 == 1 else "text/html"
        html = missing if number % 5 == 0 else f"<p>{FOOD.format(name)}</p>"
        pages.add(f"http://a.test{name}", html, Content_Type=kind)
    arguments = ("-O", "feed.json", "-s", "TRES_PAGES=20", "-s", "CONCURRENT_REQUESTS=16")
    process = scrapy("crawl", "theirs", *arguments, project=tmp_path, pages=pages)
    assert process.returncode == 0, process.stderr
    called = [item["is_page"] for item in json.loads((tmp_path / "feed.json").read_text())]
    assert called.count(True) == process.stats["tres/pages"] == 20
    assert called.count(False) == process.stats["tres/data_answers"] > 0
