import asyncio
import re
from random import Random
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import pytest
from scrapy import Request, Spider
from scrapy.exceptions import DownloadTimeoutError, IgnoreRequest, StopDownload
from scrapy.http import TextResponse
from scrapy.spidermiddlewares.httperror import HttpError
from scrapy.utils.test import get_crawler

from tres_scrapy.downloader import robots as robots_txt
from tres_scrapy.downloader.refusal import FetchRefusedError, failure_of
from tres_scrapy.downloader.request import ROBOTS_TXT
from tres_scrapy.downloader.robots import MAX_LENGTH, RobotsMiddleware

CLOSED = b"User-agent: *\nDisallow: /closed\n"
US = "tres-scrapy"
ENCODINGS = ["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"]
PATTERNS = ["/", "/a", "/a/", "/a/*/c", "/*.html$", "/caf\xe9", "/*?x", "/*b", "/ab$", ""]
PATHS = ["/", "/a", "/ab", "/abc", "/a/x/c", "/a/b.html", "/b.html?x", "/caf%C3%A9/b", "/c"]


class Engine:
    """Answers every robots.txt with `answer`, a status or an error; records the requests."""

    def __init__(self, length):
        self.body = CLOSED.ljust(length, b"#")
        self.answer = 200
        self.files = {}  # an answer and a body by host, if it is another
        self.asked = []
        self.headers = {}

    async def download_async(self, request):
        self.asked.append(request)
        await asyncio.sleep(0)
        host = urlsplit(request.url).hostname
        answer, body = self.files.get(host, (self.answer, self.body))
        if isinstance(answer, Exception):
            raise answer
        return TextResponse(request.url, answer, body=body, headers=self.headers)

    @property
    def urls(self):
        return [request.url for request in self.asked]


@pytest.fixture
def middleware(monkeypatch):
    monkeypatch.setattr(robots_txt, "ROOM", 4096)
    crawler = get_crawler(Spider, {"ROBOTSTXT_OBEY": True, "USER_AGENT": "tres-scrapy"})
    crawler.engine = Engine(2000)
    return RobotsMiddleware.from_crawler(crawler)


@pytest.fixture
def engine(middleware):
    return middleware.crawler.engine


def outcome(middleware, *urls):
    """Return for each URL, all requested at once, None or the error that refuses it."""

    async def ask(url):
        request = Request(url)
        try:
            await middleware.process_request(request)
        except Exception as error:
            return error
        return None

    async def ask_all():
        return await asyncio.gather(*map(ask, urls))

    return asyncio.run(ask_all())


def closed(middleware, *hosts):
    """Return whether /closed of each host is forbidden."""
    errors = outcome(middleware, *(f"http://{host}.test/closed" for host in hosts))
    return [failure_of(error).kind == "robots" if error else False for error in errors]


def test_every_waiting_request_gets_rules(middleware, engine):
    assert closed(middleware, *"aaa") == [True] * 3
    assert engine.urls == ["http://a.test/robots.txt"]


def test_each_scheme_and_port_has_rules(middleware, engine):
    places = ["http://a.test", "https://a.test", "http://a.test:81"]
    outcome(middleware, *(f"{place}/x" for place in places))
    assert sorted(engine.urls) == sorted(f"{place}/robots.txt" for place in places)


def test_oldest_rules_are_forgotten(middleware, engine, monkeypatch):
    monkeypatch.setattr(robots_txt, "SMALLEST", 2000)
    for host in "abac":
        assert closed(middleware, host) == [True]
    assert closed(middleware, *"bac") == [True] * 3
    assert engine.urls == [f"http://{host}.test/robots.txt" for host in "abcb"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 204])
def test_no_rules_forbid_nothing(middleware, engine, status):
    engine.answer = status
    assert outcome(middleware, "http://a.test/closed") == [None]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_failing_host_forbids_all(middleware, engine, status):
    engine.answer = status
    first, second = outcome(middleware, "http://a.test/1", "http://a.test/2")
    assert isinstance(first, HttpError)
    assert first.response.status == status
    assert failure_of(second).kind == f"http_{status}"
    assert len(engine.asked) == 1


def test_silent_host_forbids_all(middleware, engine):
    engine.answer = DownloadTimeoutError()
    request = Request("http://a.test/1")
    with pytest.raises(DownloadTimeoutError):
        asyncio.run(middleware.process_request(request))


@pytest.mark.parametrize(("answer", "again"), [(503, "AGAIN"), (200, "VALID")])
def test_rules_are_asked_for_again(middleware, engine, monkeypatch, answer, again):
    monkeypatch.setattr(robots_txt, again, 0.0)
    middleware._again = robots_txt.AGAIN
    engine.answer = answer
    outcome(middleware, "http://a.test/x")
    engine.answer = 200
    assert closed(middleware, "a") == [True]
    assert len(engine.asked) == 2


VALIDATORS = {"ETag": '"v1"', "Last-Modified": "Mon, 01 Jun 2026 08:00:00 GMT"}
CONDITIONS = {b"If-None-Match": b'"v1"', b"If-Modified-Since": b"Mon, 01 Jun 2026 08:00:00 GMT"}


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(robots_txt, "monotonic", lambda: clock.now)
    return clock


def conditions(engine):
    headers = engine.asked[-1].headers
    return {name: headers[name] for name in CONDITIONS if name in headers}


def test_rules_of_yesterday_are_kept_unless_changed(middleware, engine, clock):
    engine.headers = VALIDATORS
    assert closed(middleware, "a") == [True]
    assert conditions(engine) == {}
    clock.now = robots_txt.VALID - 1
    assert closed(middleware, "a") == [True]
    assert len(engine.asked) == 1
    clock.now = robots_txt.VALID
    engine.answer, engine.body = 304, b""
    assert closed(middleware, "a") == [True]
    assert conditions(engine) == CONDITIONS
    clock.now = 2 * robots_txt.VALID
    engine.answer, engine.body = 200, b"User-agent: *\nDisallow:\n"
    assert closed(middleware, "a") == [False], "they have changed"


def test_conditions_outlive_a_failure(middleware, engine, clock):
    engine.headers = VALIDATORS
    assert closed(middleware, "a") == [True]
    clock.now = robots_txt.VALID
    engine.answer = 503
    assert failure_of(outcome(middleware, "http://a.test/x")[0]).kind == "http_503"
    clock.now += 60
    engine.answer, engine.body = 304, b""
    assert closed(middleware, "a") == [True]
    assert conditions(engine) == CONDITIONS


@pytest.mark.parametrize(
    ("status", "headers"), [(404, VALIDATORS), (200, {}), (200, {"ETag": "x" * 2000})]
)
def test_other_files_are_asked_for_whole(middleware, engine, clock, status, headers):
    engine.answer, engine.headers = status, headers
    closed(middleware, "a")
    clock.now = robots_txt.VALID
    closed(middleware, "a")
    assert len(engine.asked) == 2
    assert conditions(engine) == {}


@pytest.mark.parametrize("error", [IgnoreRequest("max redirections reached")])
def test_endless_redirects_forbid_nothing(middleware, engine, error):
    engine.answer = error
    assert outcome(middleware, "http://a.test/closed") == [None]


def test_bomb_forbids_all(middleware, engine):
    engine.answer = FetchRefusedError("too large", "too_large")
    (error,) = outcome(middleware, "http://a.test/x")
    assert failure_of(error).kind == "too_large"


def test_long_file_is_not_read_further(middleware):
    request = Request("http://a.test/robots.txt", meta={ROBOTS_TXT: 0})
    middleware.bytes_received(bytes(MAX_LENGTH), request)
    with pytest.raises(StopDownload):
        middleware.bytes_received(b"x", request)
    middleware.bytes_received(bytes(2 * MAX_LENGTH), Request("http://a.test/"))


def a_file(random):
    """Return a robots.txt as bytes, and the rules in it that are ours."""
    groups, rules = [], {US: [], "*": []}
    for _ in range(random.randrange(5)):
        agents = random.sample([US, "*", "other", "tres", "Scrapy", "t"], random.randrange(1, 4))
        own = [
            (random.choice(["Allow", "Disallow", "Disallow"]), random.choice(PATTERNS))
            for _ in range(random.randrange(1, 5))
        ]
        groups.append((agents, own))
        for agent in rules.keys() & set(agents):
            rules[agent] += own
    lines = [random.choice(["", "# none", "Sitemap: http://a.test/x", "Host: a"])]
    for agents, own in groups:
        lines += [f"User-agent: {agent}" for agent in agents]
        lines += [f"{kind}: {pattern}{random.choice(['', ' # so'])}" for kind, pattern in own]
        lines.append(random.choice(["", "Foo: bar"]))
    is_named = any(US in agents for agents, _ in groups)
    text = random.choice(["\n", "\r\n", "\r"]).join(lines)
    long = "\n" + "#" * MAX_LENGTH if random.random() < 0.01 else ""
    return (text + long).encode(random.choice(ENCODINGS)), rules[US if is_named else "*"]


def forbids(rules, path):
    """Return what the longest rule that fits says, read slowly; a rule that allows wins a tie."""
    fits = [(0, True)]
    for kind, pattern in rules:
        written = quote(pattern, safe="/*?$%")
        regex = re.escape(written).replace(r"\*", ".*")
        regex = regex.removesuffix(r"\$") + "$" * written.endswith("$")
        if written and re.match(regex, path):
            fits.append((len(written), kind == "Allow"))
    return not max(fits)[1]


@pytest.mark.long
def test_generated_files_are_obeyed(middleware, engine, monkeypatch):
    """Of 1,000 hosts nothing is fetched that their answer forbids, and all else is."""
    monkeypatch.setattr(robots_txt, "ROOM", 2**24)
    fails = [429, 500, 503, DownloadTimeoutError(), FetchRefusedError("too large", "too_large")]
    silent = [404, 403, 204, 410, IgnoreRequest("max redirections reached")]
    expected = {}
    for number in range(1_000):
        random, host = Random(number), f"h{number}.test"
        answer = random.choice([200] * 20 + fails + silent)
        body, rules = a_file(random)
        engine.files[host] = answer, body
        for path in PATHS:
            is_forbidden = answer in fails or (answer == 200 and forbids(rules, path))
            expected[f"http://{host}{path}"] = is_forbidden
    found = zip(expected, outcome(middleware, *expected), strict=True)
    assert {url: error is not None for url, error in found} == expected
    assert len(expected) / 5 < sum(expected.values()) < len(expected) / 2
    assert len(engine.asked) == 1_000
