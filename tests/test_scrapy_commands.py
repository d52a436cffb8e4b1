"""Each command of Scrapy does in a project with the add-on what it does without it."""

import os
import re
import subprocess

import pytest
from conftest import interpreter

pytestmark = pytest.mark.slow

SETTINGS = """
BOT_NAME = "theirs"
SPIDER_MODULES = ["theirs.spiders"]
NEWSPIDER_MODULE = "theirs.spiders"
LOG_LEVEL = "ERROR"
"""
SPIDER = '''
from scrapy import Spider


class Theirs(Spider):
    """A spider with a contract."""

    name = "theirs"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        """Yield the title.

        @url http://a.test/
        @returns items 1 1
        @scrapes title
        """
        yield {"title": response.css("title::text").get()}
'''
ALONE = """
from scrapy import Spider


class Alone(Spider):
    name = "alone"
    start_urls = ["http://a.test/"]

    def parse(self, response):
        print("title", response.css("title::text").get())
"""
RUN = """
import asyncio
from scrapy.crawler import AsyncCrawlerProcess, AsyncCrawlerRunner, CrawlerProcess
from scrapy.utils.project import get_project_settings
from scrapy.utils.reactor import install_reactor
from theirs.spiders import Theirs

class Other(Theirs):
    name = "other"

    def parse(self, response):
        print(self.name, response.css("title::text").get())

class Third(Other):
    name = "third"

{run}
"""
PROCESS = """
process = {kind}(get_project_settings())
process.crawl(Other)
process.start()
"""
TWO = """
async def both():
    runner = AsyncCrawlerRunner(get_project_settings())
    await runner.crawl(Other)
    await runner.crawl(Third)
install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
from twisted.internet import reactor
from twisted.internet.defer import Deferred
Deferred.fromFuture(asyncio.ensure_future(both())).addBoth(lambda _: reactor.stop())
reactor.run()
"""
URL = "http://a.test/"
COMMANDS = {
    "shell": ("shell", URL, "-c", "response.css('title::text').get()"),
    "shell of a spider": ("shell", URL, "--spider", "theirs", "-c", "spider.name, response.status"),
    "fetch": ("fetch", URL),
    "fetch headers": ("fetch", "--headers", "http://a.test/gone"),
    "view": ("view", URL),
    "parse": ("parse", URL, "--spider", "theirs", "--nocolour"),
    "check": ("check",),
    "list": ("list",),
    "bench": ("bench", "-s", "CLOSESPIDER_TIMEOUT=1", "-s", "LOG_LEVEL=ERROR"),
    "genspider": ("genspider", "fresh", "b.test"),
    "settings": ("settings", "--get", "BOT_NAME"),
    "version": ("version", "-v"),
    "runspider": ("runspider", "alone.py"),
    "CrawlerProcess": PROCESS.format(kind="CrawlerProcess"),
    "AsyncCrawlerProcess": PROCESS.format(kind="AsyncCrawlerProcess"),
    "AsyncCrawlerRunner, two crawls": TWO,
}
CRAWLS = {"runspider", *list(COMMANDS)[-3:]}
WITH_ADDON = 'ADDONS = {"tres_scrapy.addon.TresAddon": 100}\nTRES_TOPIC = "food"\n'


@pytest.fixture
def projects(tmp_path, pages):
    """Two projects that differ in the add-on alone."""
    pages.add(URL, "<title>Bread</title><p>rice</p>")
    pages.add("http://a.test/gone", status=404)
    made = []
    for name, more in (("plain", ""), ("addon", WITH_ADDON)):
        folder = tmp_path / name
        (folder / "theirs" / "spiders").mkdir(parents=True)
        (folder / "scrapy.cfg").write_text("[settings]\ndefault = theirs.settings\n")
        (folder / "theirs" / "__init__.py").touch()
        (folder / "theirs" / "settings.py").write_text(SETTINGS + more)
        (folder / "theirs" / "spiders" / "__init__.py").write_text(SPIDER)
        (folder / "alone.py").write_text(ALONE)
        made.append(folder)
    return made


def run(folder, command, pages):
    """Run a command of Scrapy, or a script, as its user would; return what it says and leaves."""
    words = ["-m", "scrapy", *command]
    if isinstance(command, str):
        (folder / "run.py").write_text(RUN.format(run=command))
        words = ["run.py"]
    proxy = {"http_proxy": f"http://127.0.0.1:{pages.port}", "no_proxy": "localhost"}
    ended = subprocess.run(
        [interpreter().path, *words],
        cwd=folder,
        env=os.environ | proxy | {"BROWSER": "echo %s"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix != ".pyc"}
    said = ended.stdout.replace(str(folder), "FOLDER")
    said = re.sub(r"file:\S+|0x[0-9a-f]+|in [0-9.]+s|Date: [^\n]+|User-Agent: [^\n]+", "", said)
    return ended.returncode, said, ended.stderr, left


@pytest.mark.parametrize("name", COMMANDS)
def test_command_works_as_without_addon(name, projects, pages):
    plain, ours = (run(folder, COMMANDS[name], pages) for folder in projects)
    assert ours[:2] == plain[:2], ours[2]
    assert plain[0] == 0, plain[2]
    assert "Traceback" not in ours[2]
    more = {path for path in ours[3] - plain[3] if not path.startswith("output")}
    assert not more
    assert bool(ours[3] - plain[3]) == (name in CRAWLS), "only a crawl writes a report"


def test_shell_of_our_spider_needs_no_topic(scrapy, tmp_path, pages):
    pages.add(URL, "<title>Bread</title>")
    process = scrapy("shell", URL, "--spider", "tres", "-c", "response.status", pages=pages)
    assert process.returncode == 0, process.stderr
    assert "200" in process.stdout
    assert not list(tmp_path.iterdir())
