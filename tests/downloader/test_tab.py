"""Pages with scripts, friendly and not, in a real Chromium behind the gate."""

import asyncio
import json
import os
import socket
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from conftest import Server
from playwright.async_api import async_playwright

from tres_scrapy.downloader.browser import context_options, find_browser, launch_options
from tres_scrapy.downloader.gate import BrowserGate, GateRule, Parent
from tres_scrapy.downloader.tab import FetchedPage, RenderError, Tab, TabLimits
from tres_scrapy.page.kind import Content, content_of

try:
    BROWSER = find_browser()
except ValueError as missing:
    pytest.skip(f"no Chromium here: {missing}", allow_module_level=True)

URL = "http://app.test/page"
APP = '<title>soup</title><div id="app"></div><script src="/app.js"></script>'
JAVASCRIPT = """
  fetch("/api").then(answer => answer.json()).then(data => {
    document.getElementById("app").innerHTML =
      "<p>" + data.text + "</p>" + data.links.map(link => `<a href="${link}">${link}</a>`).join();
  });
"""
DATA = {"text": "leek " * 40, "links": ["/1", "/2", "http://b.test/3"]}


class Chromium:
    """A browser on a loop in a thread, its gate, and the web behind the gate."""

    def __init__(self, home):
        self.home = home
        self.asked = []
        self.answers = {
            "http://app.test/app.js": ("text/javascript", JAVASCRIPT),
            "http://app.test/api": ("application/json", json.dumps(DATA)),
        }
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(300)

    async def start(self, port):
        async def resolve(host):
            raise AssertionError(host)  # the parent does

        self.gate = BrowserGate(GateRule(resolve), Parent("http", "127.0.0.1", port))
        self.port = await self.gate.start()
        self.driver = await async_playwright().start()
        options = launch_options(BROWSER, self.home, (), sandbox=os.geteuid() != 0)
        self.browser = await self.driver.chromium.launch(**options)

    async def stop(self):
        await self.browser.close()
        await self.driver.stop()
        await self.gate.stop()

    def render(self, html, *headers, meanwhile=None, url=URL, **limits):
        return self.run(self._render(html, headers, meanwhile, url, limits))

    async def _render(self, html, headers, meanwhile, url, limits):
        context = await self.browser.new_context(**context_options(self.port, "tres", "en"))
        page = await context.new_page()
        # generous limits for a busy machine, for messages to and from the browser
        limits = {"timeout": 60.0, "idle": 5.0, "answer": 60.0, "reading": 120.0} | limits
        try:
            tab = Tab(page, FetchedPage(url, list(headers), html), TabLimits(**limits))
            if meanwhile is None:
                return await tab.render()
            return (await asyncio.gather(tab.render(), meanwhile(page)))[0]
        finally:
            await asyncio.wait_for(page.close(), 60)
            assert context.pages == []
            await context.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    """Start a browser for all tests, and a proxy that serves their pages."""
    browser = Chromium(tmp_path_factory.mktemp("home"))

    class Web(BaseHTTPRequestHandler):
        def do_GET(self):
            browser.asked.append(self.path)
            kind, text = browser.answers.get(self.path, ("text/html", ""))
            body = text.encode()
            self.send_response(200 if body else 404)
            for name, value in (("Content-Type", kind), ("Content-Length", str(len(body)))):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = Server(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser.run(browser.start(server.server_port))
    yield browser
    browser.run(browser.stop())
    browser.loop.call_soon_threadsafe(browser.loop.stop)
    browser.thread.join()
    browser.loop.close()
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _forget(chromium):
    chromium.asked.clear()
    chromium.gate.refused.clear()


@pytest.fixture
def loopback():
    """A port of this machine that counts TCP connections and UDP packets."""
    hits = []
    tcp = socket.create_server(("127.0.0.1", 0))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(tcp.getsockname())

    def accept():
        while True:
            try:
                hits.append(tcp.accept()[1])
            except OSError:
                return

    def receive():
        while data := udp.recv(4096):
            if data == b"end":
                return
            hits.append(data)

    threads = [threading.Thread(target=target, daemon=True) for target in (accept, receive)]
    for thread in threads:
        thread.start()
    yield tcp.getsockname()[1], hits
    tcp.shutdown(socket.SHUT_RDWR)
    tcp.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
        last.sendto(b"end", udp.getsockname())
    for thread in threads:
        thread.join()
    udp.close()


@pytest.mark.long
def test_app_builds_its_text_and_links(chromium):
    rendered = chromium.render(APP)
    assert content_of(rendered.html) == Content(words=42, links=3)
    assert "<script" not in rendered.html
    assert URL not in chromium.asked  # the document is passed on, not requested again
    assert {"http://app.test/app.js", "http://app.test/api"} <= set(chromium.asked)


@pytest.mark.long
@pytest.mark.parametrize("link", ["", '<link rel="icon" href="/icon.png">'])
def test_no_icon_is_fetched(chromium, link):
    chromium.render(f"<title>soup</title>{link}<img src='/dish.png'><p>leek")
    assert chromium.asked == []


def test_late_content_is_waited_for(chromium):
    script = """
      setTimeout(() => document.body.append("late"), 300);
      new IntersectionObserver(seen => seen[0].isIntersecting && document.body.append("in view"))
        .observe(document.getElementById("end"));
    """
    html = f"<div style='height: 3000px'></div><p id=end>end</p><script>{script}</script>"
    rendered = chromium.render(html)
    assert "late" in rendered.html
    assert "in view" in rendered.html


def test_shadow_roots_are_unfolded(chromium):
    script = """
      const root = host.attachShadow({mode: "open"});
      root.innerHTML = "<p>in the shadow</p><span></span>";
      root.querySelector("span").attachShadow({mode: "open"}).innerHTML = "<a href=/deep>deep</a>";
    """
    rendered = chromium.render(f"<div id=host></div><script>{script}</script>")
    assert content_of(rendered.html) == Content(words=4, links=1)


def test_links_follow_a_changed_address(chromium):
    script = (
        'history.pushState({}, "", "/shop/soups/"); document.body.innerHTML = "<a href=1>x</a>"'
    )
    rendered = chromium.render(f"<head></head><body></body><script>{script}</script>")
    assert '<base href="http://app.test/shop/soups/">' in rendered.html
    assert "<base" not in chromium.render("<p>soup").html


def test_cookie_reload_is_served(chromium):
    chromium.answers[URL] = ("text/html", "<p>second</p>")
    script = "document.cookie = 'seen=1'; location.reload()"
    rendered = chromium.render(f"<p>first</p><script>{script}</script>")
    assert "second" in rendered.html
    assert chromium.asked.count(URL) == 1


def test_endless_reload_is_left(chromium):
    html = "<p>again</p><script>location.reload()</script>"
    chromium.answers[URL] = ("text/html", html)
    assert "again" in chromium.render(html).html
    assert chromium.asked.count(URL) == 2


@pytest.mark.parametrize(
    "script",
    [
        "while (true) {}",
        "while (true) { alert(1) }",
        "onbeforeunload = () => 1; while (true) { confirm(1) }",
        "setInterval(() => { for (let i = 0; i < 1e9; i++); }, 0)",
        "(function again() { fetch('/api').finally(again) })()",
    ],
    ids=["loop", "alerts", "confirms", "timers", "requests"],
)
@pytest.mark.long
def test_endless_script_is_stopped(chromium, script):
    rendered = chromium.render(f"<p>before</p><script>{script}</script>", timeout=5.0, idle=1.0)
    assert "before" in rendered.html


@pytest.mark.parametrize(
    "script",
    [
        "location = 'http://127.0.0.1:{0}/'",
        "location.replace('http://localhost:{0}/')",
        "top.location.href = 'http://[::1]:{0}/'",
    ],
)
def test_script_navigation_is_reported_not_followed(chromium, loopback, script):
    port, hits = loopback
    rendered = chromium.render(f"<p>x</p><script>{script.format(port)}</script>")
    assert rendered.leads_to.endswith(f":{port}/")
    assert rendered.html == ""
    assert not hits


def test_meta_refresh_is_a_link_too(chromium):
    html = "<meta http-equiv=refresh content='0; url=http://b.test/next'>"
    assert chromium.render(html).leads_to == "http://b.test/next"
    assert "http://b.test/next" not in chromium.asked


def test_reload_redirect_is_followed(chromium):
    chromium.answers[URL] = ("text/html", "<script>location = '/elsewhere'</script>")
    rendered = chromium.render("<script>location.reload()</script>")
    assert rendered.leads_to == "http://app.test/elsewhere"


def test_forms_are_not_sent(chromium):
    form = "<form method=post action=/buy></form>"
    html = f"<p>form</p>{form}<script>document.forms[0].submit()</script>"
    assert "form" in chromium.render(html).html
    assert "http://app.test/buy" not in chromium.asked


def test_no_script_reaches_this_machine(chromium, loopback):
    port, hits = loopback
    places = [f"127.0.0.1:{port}", f"localhost:{port}", f"[::1]:{port}", f"0x7f.1:{port}"]
    script = f"""
      const ends = [];
      for (const place of {places}) {{
        ends.push(fetch("http://" + place + "/").catch(() => 0));
        ends.push(fetch("https://" + place + "/", {{mode: "no-cors"}}).catch(() => 0));
        ends.push(new Promise(end => {{ new WebSocket("ws://" + place).onerror = end }}));
        ends.push(new Promise(end => {{ new WebSocket("wss://" + place).onerror = end }}));
        const events = new EventSource("http://" + place + "/");
        ends.push(new Promise(end => {{ events.onerror = () => {{ events.close(); end() }} }}));
        navigator.sendBeacon("http://" + place + "/", "x");
        for (const [name, field] of [["img", "src"], ["script", "src"], ["iframe", "src"],
                                     ["link", "href"], ["object", "data"], ["video", "src"]]) {{
          const element = document.createElement(name);
          for (const rel of name == "link" ? ["stylesheet", "preconnect", "prefetch"] : [""]) {{
            element.rel = rel;
            element[field] = "http://" + place + "/" + rel;
            document.body.append(element.cloneNode());
          }}
        }}
      }}
      if (window.WebTransport) new WebTransport("https://127.0.0.1:{port}/").ready.catch(() => 0);
      Promise.all(ends).then(() => document.body.append("all failed"));
    """
    html = f"<body><script>{script}</script></body>"
    assert "all failed" in chromium.render(html, idle=3.0).html
    assert not hits
    assert chromium.gate.refused.total() >= 4 * len(places)


def test_pages_and_their_frames_have_no_webrtc(chromium):
    script = """
      const frame = document.createElement("iframe");
      document.body.append(frame);
      const found = [window, frame.contentWindow].map(each =>
        typeof each.RTCPeerConnection + typeof each.webkitRTCPeerConnection);
      document.body.append("found " + found.join());
    """
    html = chromium.render(f"<body><script>{script}</script></body>").html
    assert "found undefinedundefined,undefinedundefined" in html


def test_local_files_are_out_of_reach(chromium, tmp_path):
    secret = tmp_path / "secret.html"
    secret.write_text("secret")
    script = f"""
      const places = ["file://{secret}", "chrome://version/", "view-source:file://{secret}"];
      for (const place of places) {{
        fetch(place).then(answer => answer.text()).then(text => document.body.append(text))
          .catch(() => 0);
        const frame = document.createElement("iframe");
        frame.src = place;
        document.body.append(frame);
        try {{ location = place }} catch (error) {{}}
      }}
    """
    rendered = chromium.render(f"<body><p>safe</p><script>{script}</script></body>")
    assert "safe" in rendered.html
    assert "secret" not in rendered.html.replace(str(secret), "")
    assert rendered.leads_to == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "script",
    [
        "window.open('http://b.test/popup')",
        "window.open('http://b.test/popup', '_blank', 'noopener')",
        "for (let i = 0; i < 50; i++) window.open('http://b.test/popup' + i)",
        "link.click()",
    ],
)
def test_popups_do_not_open(chromium, script):
    link = "<a id=link target=_blank href=http://b.test/popup>x</a>"
    assert "opener" in chromium.render(f"<p>opener</p>{link}<script>{script}</script>").html
    assert not [url for url in chromium.asked if "popup" in url]


def test_downloads_are_refused(chromium, tmp_path):
    script = """
      const a = document.createElement("a");
      a.href = URL.createObjectURL(new Blob(["x".repeat(1e6)]));
      a.download = "file.bin";
      document.body.append(a);
      a.click();
    """
    html = f"<p>page</p><script>{script}</script>"
    rendered = chromium.render(html, ("Content-Disposition", "attachment"))
    assert "page" in rendered.html
    assert not [path for path in Path(chromium.home).rglob("*") if path.name.startswith("file.bin")]


def test_frames_and_pictures_are_not_loaded(chromium):
    html = "<p>x</p><iframe src=/frame></iframe><img src=/picture.png><video src=/film></video>"
    chromium.render(html)
    assert not [
        url for url in chromium.asked if url.split("/")[-1] in {"frame", "picture.png", "film"}
    ]
    chromium.render(html, blocked=())
    assert "http://app.test/picture.png" in chromium.asked


def test_service_workers_are_off(chromium):
    script = """
      const frame = document.createElement("iframe");
      document.body.append(frame);
      const found = [window, frame.contentWindow].map(each => "serviceWorker" in each.navigator);
      document.body.append(isSecureContext + " " + found);
    """
    html = f"<body><script>{script}</script></body>"
    rendered = chromium.render(html, url="https://app.test/")  # they are not available over http
    assert "true false,false" in rendered.html


@pytest.mark.long
def test_page_too_large_is_refused(chromium):
    script = "document.body.append('x'.repeat(2_000_000))"
    html = f"<body><script>{script}</script></body>"
    with pytest.raises(RenderError, match="Rendering gave more than 1000000 characters"):
        chromium.render(html, longest=1_000_000)


@pytest.mark.long
def test_huge_page_fails_alone(chromium):
    script = "const s = 'x'.repeat(1e6); for (let i = 0; i < 300; i++) document.body.append(s + i)"
    with pytest.raises(RenderError) as caught:
        chromium.render(
            f"<body><script>{script}</script></body>", timeout=5.0, idle=1.0, reading=15.0
        )
    assert caught.value.kind in {"render_timeout", "render_too_large", "render_crash"}
    assert "next" in chromium.render("<p>next").html


def test_page_cannot_inject_functions(chromium):
    script = """
      const lie = {get: () => "lie"};
      Object.defineProperty(Element.prototype, "outerHTML", lie);
      Object.defineProperty(Document.prototype, "documentElement", lie);
      Document.prototype.querySelector = () => null;
      Element.prototype.querySelectorAll = () => [];
    """
    names = "".join(f"<img name={name}>" for name in ("documentElement", "head", "querySelector"))
    rendered = chromium.render(f"<p>truth</p>{names}<script>{script}</script>")
    assert "truth" in rendered.html


def test_crash_fails_one_page(chromium):
    async def crash(page):
        await page.wait_for_event("request")
        session = await page.context.new_cdp_session(page)
        await session.send("Page.enable")
        with pytest.raises(asyncio.TimeoutError):  # a crashed page sends no answer
            await asyncio.wait_for(session.send("Page.crash"), 5)

    html = "<p>x</p><script>setInterval(() => fetch('/api'), 100)</script>"
    with pytest.raises(RenderError, match="Rendering crashed the page"):
        chromium.render(html, meanwhile=crash, timeout=60.0, idle=60.0)
    assert "next" in chromium.render("<p>next").html


def test_the_sites_own_policy_holds(chromium):
    html = APP + "<script>document.body.append('inline')</script>"
    rendered = chromium.render(html, ("Content-Security-Policy", "script-src 'self'"))
    assert "inline" not in rendered.html
    assert "leek" in rendered.html


def test_surrogates_are_read(chromium):
    assert "x" in chromium.render("<p>x<script>document.body.append('\\ud800')</script>").html
