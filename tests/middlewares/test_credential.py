"""User names and passwords in URLs, in a real crawl."""

import logging
from time import process_time

import pytest
from scrapy import Request
from scrapy.http import Response
from soup import FOOD

from tres_scrapy.middlewares.message import CredentialMiddleware, LogFilter

SECRET = "s3cret"  # noqa: S105 - not a real one


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (f"http://me:{SECRET}@a.test/", "http://a.test/"),
        (f"//me:{SECRET}@a.test/x", "//a.test/x"),
        (f" HTTPS://me@you:{SECRET}@a.test:8/?q=x@y", " HTTPS://a.test:8/?q=x@y"),
        ("/people/@me", "/people/@me"),
        ("http://a.test/@me", "http://a.test/@me"),
        ("http://a.test?to=me@a.test", "http://a.test?to=me@a.test"),
    ],
)
def test_a_redirect_loses_its_credentials(written, kept):
    response = Response("http://b.test/", 302, headers={"Location": written})
    CredentialMiddleware().process_response(Request("http://b.test/"), response)
    assert response.headers["Location"].decode() == kept


def test_request_loses_only_credentials():
    middleware = CredentialMiddleware()
    url, meta = f"http://me:{SECRET}@a.test:8/x?y=@z", {"redirect_urls": ["http://b.test/"]}
    request = Request(url, meta=meta, priority=2)
    replaced = middleware.process_request(request)
    assert (replaced.url, replaced.meta, replaced.priority) == (
        *("http://a.test:8/x?y=@z", meta, 2),
    )
    assert middleware.process_request(replaced) is None


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (f"to <GET http://me:{SECRET}@a.test/x>", "to <GET http://a.test/x>"),
        (f"{{'seed': 'https://me@x.test:{SECRET}@a.test'}}", "{'seed': 'https://a.test'}"),
        ("http://a.test/ is of me@b.test", "http://a.test/ is of me@b.test"),
        ("http://a.test/@me and http://b.test", "http://a.test/@me and http://b.test"),
        (
            "encoding '\x1b[2J\r\x9b'\n\tcafé\u202e",
            r"encoding '\x1b[2J\r\x9b'" "\n\tcafé" r"\u202e",
        ),
    ],
)
def test_log_loses_credentials_and_escapes(said, told):
    record = logging.LogRecord("scrapy", logging.DEBUG, "", 0, "%s, 100 %%", (said,), None)
    assert LogFilter().filter(record)
    assert record.getMessage() == f"{told}, 100 %"


@pytest.mark.parametrize("part", ["a.", "a-b+", "a://", "http:", "@"])
def test_long_header_is_filtered_in_linear_time(part):
    def seconds(length):
        record = logging.LogRecord("scrapy", logging.INFO, "", 0, "%s", (part * length,), None)
        start = process_time()
        assert LogFilter().filter(record)
        return process_time() - start

    short = min(seconds(5_000) for _ in range(3))
    assert seconds(40_000) < 25 * short + 0.05  # 64 times if quadratic


def test_credentials_reach_no_output(crawl, pages):
    place = f"me:{SECRET}@"
    pages.add("http://a.test/", f'<a href="http://{place}b.test/1">x</a> <a href="/2">x</a>')
    pages.add("http://b.test/1", FOOD.format("leek"))
    pages.add("http://a.test/2", status=301, Location=f"http://{place}b.test/3")
    pages.add(
        "http://b.test/3", f'<meta http-equiv="refresh" content="0;url=http://{place}b.test/4">'
    )
    pages.add("http://b.test/4", FOOD.format("pea"))
    process, items = crawl(
        *("-a", f"seed=http://{place}a.test/", "-s", "LOG_LEVEL=DEBUG"), pages=pages
    )
    assert process.returncode == 0, process.stderr
    assert {f"http://b.test/{i}" for i in (1, 3, 4)} < set(pages.fetched())
    assert len(items) == 2
    assert "Redirecting (meta refresh) to <GET http://b.test/4>" in process.stderr
    assert SECRET not in str(items) + process.stderr + process.stdout
    assert SECRET not in str(pages.requests)
