"""`-a render=`: which pages are rendered, and a crawl through a web of scripts."""

import asyncio
import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest
from conftest import PROJECT, running
from scrapy import Request
from scrapy.exceptions import NotConfigured
from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings
from scrapy.utils.test import get_crawler

from tres_scrapy.addon import TresAddon
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.downloader.browser import find_browser
from tres_scrapy.downloader.rendering import CERTAIN, MEMORY, Rendering
from tres_scrapy.downloader.request import LEASE, RECEIVED
from tres_scrapy.export.archive import ArchiveMiddleware
from tres_scrapy.page.kind import Content
from tres_scrapy.url.message import TresError

FULL = "<p>" + "soup " * 200 + "</p>" + "<a href=/1>1</a><a href=/2>2</a><a href=/3>3</a>"
SHELL = "<div id=root></div><script src=/app.js></script>"
HEADERS = {"Content-Type": "text/html"}


@pytest.fixture
def rendering(tmp_path):
    """Return the extension for some settings, with any program as its browser."""

    def make(**settings):
        settings = {"TRES_RENDER": "auto", "TRES_BROWSER": sys.executable} | settings
        made.append(Rendering.from_crawler(get_crawler(settings_dict=settings)))
        return made[-1]

    made = []
    yield make
    for each in made:
        each.home.cleanup()


def asked(url="http://www.a.test/", **meta):
    return Request(url, meta={LEASE: 1} | meta)


def wants(rendering, html, request=None, status=200, headers=HEADERS):
    request = request or asked()
    response = HtmlResponse(request.url, status, headers, html.encode(), request=request)
    return rendering.wants(request, rendering.look(request, response))


def test_auto_renders_what_looks_empty(rendering):
    assert wants(rendering(), SHELL)
    assert not wants(rendering(), FULL)


def test_always_renders_every_page(rendering):
    always = rendering(TRES_RENDER="always")
    assert wants(always, FULL)
    assert not wants(always, FULL, status=404)
    request = asked()
    picture = Response(request.url, headers={"Content-Type": "image/png"}, body=b"\x89PNG")
    assert not always.wants(request, always.look(request, picture))


def test_only_frontier_pages_are_rendered(rendering):
    auto = rendering()
    assert auto.concerns(asked())
    assert not auto.concerns(Request("http://a.test/robots.txt"))
    own = Request("http://a.test/", meta={"playwright": True})
    assert auto.concerns(own)
    assert wants(auto, FULL, own)
    assert not auto.concerns(own.replace(method="POST"))


def test_compressed_page_is_unpacked_first(rendering):
    auto, request = rendering(), asked()
    headers = HEADERS | {"Content-Encoding": "gzip"}
    packed = HtmlResponse(request.url, 200, headers, gzip.compress(SHELL.encode()))
    seen = auto.look(request, packed)
    assert auto.wants(request, seen)
    assert seen.response.body == SHELL.encode()
    broken = HtmlResponse(request.url, 200, headers, b"no gzip")
    assert auto.look(request, broken).response is broken  # Scrapy reports the error


@pytest.mark.parametrize(("helped", "straight"), [(True, True), (False, False)])
def test_domain_need_is_learnt(rendering, helped, straight):
    auto = rendering()
    html = FULL if helped else "<p>soup</p>"
    for _ in range(CERTAIN):
        assert wants(auto, SHELL)
        asyncio.run(auto.learn(asked(), Content(0, 0), html))
    shop = asked("http://shop.a.test/")
    assert wants(auto, FULL, shop) == straight
    assert wants(auto, SHELL, shop) == straight
    assert wants(auto, SHELL, asked("http://b.test/"))


def test_what_was_learnt_outlives_the_crawl(rendering, tmp_path):
    first = rendering(JOBDIR=tmp_path)
    for _ in range(CERTAIN):
        asyncio.run(first.learn(asked(), Content(0, 0), FULL))
    first.spider_closed()
    assert wants(rendering(JOBDIR=tmp_path), FULL)
    (tmp_path / MEMORY).write_text("{", encoding="utf-8")
    with pytest.raises(TresError, match=r"render.json is not a file of render scores; delete"):
        rendering(JOBDIR=tmp_path)


def test_archive_keeps_the_received_page():
    kept = []

    class Archive:
        async def add(self, row, exchange):
            kept.append(exchange.body)

    request = asked(**{RECEIVED: Response("http://www.a.test/", body=b"shell")})
    rendered = Response("http://www.a.test/", body=b"page")
    answer = asyncio.run(ArchiveMiddleware(Archive()).process_response(request, rendered))
    assert kept == [b"shell"]
    assert answer is rendered
    assert RECEIVED not in request.meta  # nor is it in memory any longer than that


def test_render_never_is_no_extension(rendering):
    with pytest.raises(NotConfigured):
        rendering(TRES_RENDER="never")


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"TRES_BROWSER": "/nowhere/chromium"}, "must be an executable of Chromium: install"),
        ({"PLAYWRIGHT_CDP_URL": "http://127.0.0.1:9222"}, "only in a browser on this machine"),
        ({"TRES_RENDER": "maybe"}, "must be one of never, auto, always"),
    ],
)
def test_bad_render_setting_is_refused(rendering, settings, complaint):
    with pytest.raises(ConfigError, match=complaint):
        rendering(**settings)


def test_handlers_change_only_for_rendering():
    def handlers(**settings):
        settings = Settings(settings)
        TresAddon().update_settings(settings)
        return {settings.getdict("DOWNLOAD_HANDLERS").get(scheme) for scheme in ("http", "https")}

    assert handlers(TRES_RENDER="auto") == {"tres_scrapy.downloader.render_handler.RenderHandler"}
    assert (
        handlers(TRES_RENDER="never")
        == handlers()
        == {"tres_scrapy.downloader.handler.BoundedHandler"}
    )


@pytest.mark.slow
def test_who_renders_nothing_loads_no_driver():
    program = (
        "import sys, tres_scrapy.addon, tres_scrapy.spiders.crawl, tres_scrapy.spiders.tres;"
        "assert not [name for name in sys.modules if 'playwright' in name]"
    )
    subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=True)


def test_missing_browser_is_one_line(scrapy):
    arguments = ("-a", "topic=food", "-a", "seed=http://a.test/", "-a", "render=auto", "--nolog")
    process = scrapy("crawl", "tres", *arguments, "-a", "browser=/nowhere/chromium", timeout=300)
    assert process.returncode != 0
    assert process.stderr.startswith("scrapy crawl tres: TRES_BROWSER (-a browser=): '/nowhere/")
    assert process.stderr.count("\n") == 1


def test_broken_browser_is_reported(scrapy):
    arguments = ("-a", "topic=food", "-a", "seed=http://a.test/", "-a", "render=auto")
    process = scrapy("crawl", "tres", *arguments, "-a", "browser=/bin/false", timeout=300)
    assert process.returncode == 1
    assert "-a render=auto: /bin/false does not start" in process.stderr
    assert process.stats["finish_reason"] == "no_browser"
    assert "Traceback" not in process.stderr


TEXT = (
    "A recipe for soup with {0}: chop the onions, simmer the vegetables in butter, add cream, "
    "cheese and pepper, bake the bread, serve the dish hot with wine. Ingredients: flour, sugar, "
    "garlic, olive oil, tomatoes, chicken, salt, {0}, {0}."
)
APP = """
  fetch("/api" + location.pathname).then(answer => answer.json()).then(data => {
    document.title = data.title;
    document.getElementById("app").innerHTML = "<p>" + data.text + "</p>"
      + data.links.map(link => `<p><a href="${link}">${link}</a></p>`).join("");
  });
"""


def add_app(pages, host, path, name, *links):
    """Serve a page whose text and links its script fetches."""
    pages.add(f"http://{host}{path}", "<div id=app></div><script src=/app.js></script>")
    lasting = {"Content_Type": "text/javascript", "Cache_Control": "max-age=600"}
    pages.add(f"http://{host}/app.js", APP, **lasting)
    data = {"title": f"{name} soup recipe", "text": TEXT.format(name), "links": links}
    kind = "application/json"
    pages.add(f"http://{host}/api{path}", json.dumps(data), Content_Type=kind)


def add_script(pages, url, script):
    pages.add(url, f"<p>soup</p><script>{script}</script>")


@pytest.mark.long
def test_crawl_through_a_web_of_scripts(scrapy, tmp_path, pages):
    try:
        find_browser()
    except ValueError as missing:
        pytest.skip(f"no Chromium here: {missing}")
    output, start = tmp_path / "pages.jsonl", "http://app.test/"
    links = [
        "http://plain.test/",
        "http://moved.test/",
        "http://inside.test/",
        "http://large.test/",
    ]
    add_app(pages, "app.test", "/", "leek", "/2", *links)
    add_app(pages, "app.test", "/2", "pea")
    add_app(pages, "goal.test", "/", "bean")
    pages.add("http://plain.test/", TEXT.format("carrot") * 2 + FULL)
    for name in "123":
        pages.add(f"http://plain.test/{name}", status=404)
    pages.add("http://goal.test/robots.txt", "User-agent: *\nDisallow: /private")
    add_script(pages, "http://moved.test/", "location = 'http://goal.test/'")
    add_script(pages, "http://inside.test/", f"location = 'http://127.0.0.1:{pages.port}/hit'")
    add_script(
        pages,
        "http://large.test/",
        "document.body.hidden = true; document.body.append('x'.repeat(2e6))",
    )
    process = scrapy(
        *("crawl", "tres", "-a", "topic=food", "-a", f"seed={start}", "-a", "render=auto"),
        *("-a", f"output={output}", "-s", "DOWNLOAD_DELAY=0.4", "-s", "RETRY_TIMES=0"),
        *("-s", "DOWNLOAD_MAXSIZE=1000000"),
        pages=pages,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    items = {item["url"]: item for item in map(json.loads, output.read_text().splitlines())}
    assert {url: item["rendered"] for url, item in items.items()} == {
        "http://app.test/": True,
        "http://app.test/2": True,
        "http://plain.test/": False,
        "http://moved.test/": True,
    }
    assert items["http://moved.test/"]["final_url"] == "http://goal.test/"
    assert items["http://app.test/2"]["title"] == "pea soup recipe"
    assert process.stats["tres/pages"] == 4
    assert process.stats["tres/failures/private_address"] == 1
    assert process.stats["tres/failures/render_too_large"] == 1
    times = Counter(pages.fetched())
    assert [times[url] for url in (start, "http://app.test/2", "http://app.test/app.js")] == [1] * 3
    assert not [url for url in times if "/hit" in url]
    at = {url: time for time, url in pages.requests}
    assert at["http://app.test/2"] - at["http://app.test/api/"] >= 0.4


NAMES = {"/": "leek", "/2": "pea", "/3": "bean"}


@pytest.mark.long
def test_dead_browser_is_restarted(scrapy, tmp_path, pages):
    try:
        find_browser()
    except ValueError as missing:
        pytest.skip(f"no Chromium here: {missing}")
    output, job = tmp_path / "pages.jsonl", tmp_path / "job"
    for path, name in NAMES.items():
        add_app(pages, "app.test", path, name, "/2", "/3")
    pages.silent = {"http://app.test/api/2", "http://app.test/api/3"}
    command = ("crawl", "tres", "-a", "topic=food", "-a", "seed=http://app.test/")
    command += ("-a", "render=auto", "-a", "render_idle=60", "-a", f"output={output}")
    command += ("-s", f"JOBDIR={job}", "-s", "DOWNLOAD_DELAY=0", "-s", "CONCURRENT_REQUESTS=1")
    proxy = {"http_proxy": f"http://127.0.0.1:{pages.port}"}
    with running(
        *(*command, "-a", "pages=2"), fresh=True, env=os.environ | proxy, stderr=subprocess.PIPE
    ) as crawl:
        while not pages.silent & set(pages.fetched()):
            assert crawl.poll() is None, crawl.stderr.read()
            sleep(0.05)
        pages.silent = set()
        os.kill(browser_of(crawl.pid), signal.SIGKILL)
        _, log = crawl.communicate(timeout=300)
    assert crawl.returncode == 0, log
    assert log.count("The browser ended at http://app.test/") == 1
    assert "Traceback" not in log
    assert json.loads((job / "render.json").read_text()) == {"app.test": 2}
    again = scrapy(*command, "-a", "pages=3", pages=pages)
    assert again.returncode == 0, again.stderr
    items = [json.loads(line) for line in output.read_text().splitlines()]
    assert [item["rendered"] for item in items] == [True] * 3
    assert {item["title"] for item in items} == {f"{name} soup recipe" for name in NAMES.values()}
    assert "domains that need a browser: 1," in again.stderr, "as the two pages before have shown"


def browser_of(crawl):
    """Return the process of the browser that the process of a crawl has started."""
    family = {crawl}
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        with suppress(OSError):  # it has ended by now
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
            if parent in family:
                family.add(int(folder.name))
                if b"--headless" in words and b"--type=" not in words:
                    return int(folder.name)
    raise AssertionError("there is no browser")
