"""The live page by HTTP, of a crawl that is really running."""

import json
import re
import sqlite3
from types import SimpleNamespace

import pytest
from live import live_crawl
from scrapy.settings import Settings
from twisted.web.test.requesthelper import DummyRequest

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.output import WatchOptions
from tres_scrapy.extensions.dashboard import Dashboard
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.live.resource import CLOSED, FILES, LONGEST, LivePage, listening
from tres_scrapy.live.token import TOKEN_HEADER
from tres_scrapy.run.run_file import NAME

pytestmark = pytest.mark.slow

DATA = (
    *("/state", "/figures", "/page?step=1", "/relevant", "/questions", "/control"),
    *("/nothing", "/../page.py", "//"),
)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A crawl with a live page and a JOBDIR, paused."""
    directory = tmp_path_factory.mktemp("live")
    with live_crawl(directory, "-s", f"JOBDIR={directory / 'job'}") as live:
        live.directory = directory
        live.until(lambda: live.state()["pages"] > 5, "no pages came")
        assert live.steer("pause")[0] == 200
        live.until(lambda: not live.state()["under_way"], "what was under way does not end")
        yield live


@pytest.mark.long
@pytest.mark.parametrize("token", [None, "", "x", "A" * 43, "é"])
def test_nothing_is_told_without_the_token(crawl, token):
    given = token.encode("latin-1") if token else token
    for path in (*FILES, *DATA):
        status, headers, body = crawl.ask(path, X_Tres_Token=given)
        assert (status, body) == (403, CLOSED.encode()), path
        assert "Server" not in headers, path


@pytest.mark.parametrize(
    "address", ["/?token=", "/?token=wrong", "/?token={0}&token={0}", "/state?token={0}"]
)
def test_only_right_address_opens_page(crawl, address):
    assert crawl.ask(address.format(crawl.token), X_Tres_Token=None)[0] == 403


def test_cookie_opens_files_only(crawl):
    status, headers, body = crawl.ask(f"/?token={crawl.token}", X_Tres_Token=None)
    assert status == 200
    assert body.startswith(b"<!doctype html>")
    name, cookie = re.match(r"(tres_\d+=)([\w-]{43});", headers["Set-Cookie"]).groups()
    assert {"HttpOnly", "SameSite=strict"} <= set(headers["Set-Cookie"].split("; "))
    assert cookie != crawl.token
    assert crawl.token.encode() not in body
    for path in FILES:
        assert crawl.ask(path, X_Tres_Token=None, Cookie=name + cookie)[0] == 200
    for path in DATA:
        assert crawl.ask(path, X_Tres_Token=None, Cookie=name + cookie)[0] == 403
        assert crawl.ask(path, X_Tres_Token=cookie)[0] == 403
    asked = b'{"do": "resume"}'
    status, _, _ = crawl.ask("/control", "POST", asked, X_Tres_Token=None, Cookie=name + cookie)
    assert (status, crawl.state()["status"]) == (403, "paused")


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "", None, "[::1", "a@b:c"])
def test_other_names_are_refused(crawl, host):
    assert crawl.ask("/state", Host=host)[0] == 421


@pytest.mark.parametrize("host", ["localhost", "localhost:9", "127.0.0.1", "LOCALHOST:80"])
def test_own_names_are_accepted(crawl, host):
    assert crawl.ask("/state", Host=host)[0] == 200


def test_headers_forbid_everything_else(crawl):
    for path in ("/", "/state", "/nothing"):
        _, headers, _ = crawl.ask(path)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; ")
        assert "unsafe-inline" not in policy
        assert "unsafe-eval" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers


def test_page_has_no_inline_code(crawl):
    html = crawl.ask("/")[2].decode()
    assert not re.search(r"<style|style=|<script>|\son\w+=|javascript:|https?://(?!example)", html)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/control", 405),
        ("POST", "/state", 405),
        ("PUT", "/control", 405),
        ("POST", "/", 405),
        ("GET", "/nothing", 404),
        ("GET", "/page.py", 404),
        ("GET", "/page?step=99999", 204),
        ("GET", "/page?step=x", 204),
        ("GET", "/page?step=" + "9" * 30, 204),
    ],
)
def test_only_post_changes_state(crawl, method, path, status):
    assert crawl.ask(path, method)[0] == status


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"pause"',
        b'{"do": "fly"}',
        b'{"do": ["pause"]}',
        b'{"do": "seed", "value": 7}',
        b"[" * 5000,
        b"\xff",
        b'{"do": "pause", "value": "' + b"x" * LONGEST + b'"}',
        b"x" * 3_000_000,
    ],
)
def test_what_is_no_request_is_refused(crawl, body):
    status, _, answer = crawl.ask("/control", "POST", body)
    assert status == 400
    assert json.loads(answer) == {
        "error": '"do" must be one of pause, resume, stop, seed, max, distrust, yes, no'
    }
    assert crawl.state()["status"] == "paused"


def test_state_explains_each_page(crawl):
    state = crawl.state()
    assert state["status"] == "paused"
    assert state["max"] == "1"
    assert state["pages"] > 5
    assert state["harvest"] == state["relevant"] / state["pages"] > 0
    assert state["domains"] == state["relevant"], "a page of each"
    assert state["leaves"] >= 1
    crawl.until(lambda: crawl.state()["step"] >= state["pages"], "the record does not come")
    newest, *_, seed = crawl.state()["recent"]
    assert newest["step"] == crawl.state()["step"]
    assert (seed["url"], seed["outcome"], seed["why"]) == (
        *("http://h0.test/", "relevant", "Seed."),
    )
    assert seed["title"] == "leek 0 <img src=x onerror=alert(1)>", "the page escapes it"
    assert newest["why"].startswith(("Highest Q", "New domain", "Highest sum", "Exploration"))
    assert [page["step"] for page in crawl.state(newest["step"] - 2)["recent"]] == [
        *(newest["step"], newest["step"] - 1),
    ]


def test_page_tells_features_and_the_path(crawl):
    crawl.until(lambda: crawl.state()["step"] > 3, "the record does not come")
    _, _, body = crawl.ask("/page?step=3")
    page = json.loads(body)
    assert len(page["features"]) == len(FEATURES)
    assert {"name", "meaning", "value"} == set(page["features"][0])
    assert page["trail"][0]["url"] == "http://h0.test/"
    assert isinstance(page["rivals"], list)


def test_figures_are_told_once(crawl):
    def figures(step):
        status, _, body = crawl.ask(f"/figures?step={step}")
        return json.loads(body) if status == 200 else None

    def names():
        return {chart["name"] for chart in (figures(-1) or {"charts": []})["charts"]}

    wanted = {"harvest", "relevant_domains", "frontier"}
    crawl.until(lambda: wanted <= names(), "no figures come")
    found = figures(-1)
    assert set(found["charts"][0]["figure"]) == {"data", "layout"}
    # others may be drawn between the two questions
    crawl.until(lambda: figures(figures(-1)["step"]) is None, "the same figures come again")


def test_ending_crawl_says_so():
    page = LivePage(None, SimpleNamespace(close=lambda: None), None, None)
    page.close()
    request = DummyRequest([b""])
    request.path = b"/state"
    request.requestHeaders.setRawHeaders(b"Host", [b"localhost"])
    token = page._access.address(1).partition("token=")[2]
    request.requestHeaders.setRawHeaders(TOKEN_HEADER, [token.encode()])
    assert page.render(request) == b"The crawl has ended.\n"
    assert request.responseCode == 410


def test_answers_are_for_fetched_pages(crawl):
    url = crawl.state()["recent"][0]["url"]
    status, said = crawl.steer("no", url)
    assert (status, said.startswith("The topic learns it with the next pages")) == (200, True)
    assert crawl.steer("yes", "http://h2998.test/x")[0] == 409
    assert crawl.steer("yes")[0] == 409
    assert crawl.ask("/relevant", "POST", b"{}")[0] == 405
    file = crawl.directory / "job" / "topic" / "answers.txt"
    assert file.read_text(encoding="utf-8") == f"no {url}\n"
    texts = file.with_suffix(".fetched.jsonl").read_text(encoding="utf-8")
    assert "A recipe for soup" in json.loads(texts)["text"]
    asked = json.loads(crawl.ask("/questions")[2])["questions"]
    assert {"url", "title", "text", "probability", "why"} <= asked[0].keys()
    assert url not in {each["url"] for each in asked}


@pytest.mark.long
def test_crawl_is_steered(crawl):
    """One test, because each step needs the step before: pause, seed, MAX, resume, stop."""
    before, asked = crawl.state()["pages"], len(crawl.web.requests)
    assert crawl.steer("pause") == (409, "The crawl is paused")
    assert crawl.steer("seed", "@/etc/passwd")[0] == 409
    assert crawl.steer("distrust", "never.test") == (
        409,
        "No page of 'never.test' was fetched: give a registrable domain, such as example.org",
    )
    assert crawl.steer("seed", "http://localhost/") == (
        409,
        "localhost is not on the public internet; to allow it, start the crawl with "
        "private_addresses=1",
    )
    assert crawl.steer("seed", "http://h2999.test/x") == (200, "Next: http://h2999.test/x.")
    status, said = crawl.steer("max", "2")
    assert status == 200
    assert re.match(r"MAX is 2 from now on(; back in the frontier: \d+ links)?\.$", said)
    assert crawl.steer("max", "5_2")[0] == 409
    assert crawl.state()["max"] == "2"
    assert (crawl.state()["pages"], len(crawl.web.requests)) == (before, asked), "it is paused"
    assert crawl.steer("resume") == (200, "Resumed.")
    crawl.until(lambda: crawl.state()["pages"] > before + 20, "it does not go on")
    crawl.until_asked_for("http://h2999.test/", asked)
    fetched = [url for url in crawl.web.fetched() if not url.endswith("/robots.txt")]
    assert any(url.endswith("/x") for url in fetched[1:-20]), "second pages of hosts"
    assert crawl.steer("stop")[0] == 200
    assert crawl.ended() == 0, crawl.text
    assert "'finish_reason': 'shutdown'" in crawl.text
    assert "Traceback" not in crawl.text
    assert crawl.text.count(crawl.token) == 1, "the token is told once"
    with sqlite3.connect(crawl.directory / "job" / NAME) as job:
        values = dict(job.execute("SELECT name, value FROM meta"))
        urls = "".join(urls for (urls,) in job.execute("SELECT urls FROM batch"))
    job.close()
    assert json.loads(values["max_per_domain"]) == ["1", "2"]
    assert "http://h2999.test/x" in urls


def test_taken_port_is_found_early():
    first = listening(WatchOptions(dashboard=0))
    with pytest.raises(ConfigError, match=r"^TRES_DASHBOARD \(-a dashboard=\) \d+: .*in use"):
        listening(WatchOptions(dashboard=first.getsockname()[1]))
    assert first.getsockname()[0] == "127.0.0.1"
    first.close()


def test_live_page_needs_the_record():
    crawler = SimpleNamespace(settings=Settings({"TRES_DASHBOARD": "1", "TRES_RECORD": "0"}))
    with pytest.raises(ConfigError, match=r"^TRES_DASHBOARD \(-a dashboard=\) shows the record"):
        Dashboard.from_crawler(crawler)


@pytest.mark.parametrize(("text", "port"), [("0", None), ("1", 0), ("8000", 8000)])
def test_setting_is_switch_or_port(text, port):
    assert Config.from_settings({"TRES_DASHBOARD": text}).watch.dashboard == port


@pytest.mark.parametrize("text", ["80", "65536", "yes", "-1", "2", "127.0.0.1:80"])
def test_no_port_is_refused(text):
    with pytest.raises(ConfigError, match=r"must be 1 \(any free port\), 0 \(off\) or a port"):
        Config.from_settings({"TRES_DASHBOARD": text})
