"""Links to this machine or its network, in real crawls."""

import asyncio
import re

import pytest
from scrapy import Request

from tres_scrapy.downloader.private_address import PrivateAddressMiddleware
from tres_scrapy.downloader.refusal import FetchRefusedError

# The name server of these tests: each look-up returns the next address, at the end the last one.
SCRIPT = """
import socket
from scrapy.cmdline import execute

answers = {names}

def gethostbyname(name):
    known = answers.get(name, [name])
    return known.pop(0) if len(known) > 1 else known[0]

socket.gethostbyname = gethostbyname
execute()
"""
PUBLIC = "8.8.8.8"  # never connected to: each test changes the answer before


@pytest.fixture
def crawl(crawl, tmp_path):
    """Crawl; return the process, which has no traceback."""

    def run(seed, *arguments, names=None, **options):
        script = tmp_path / "crawl.py"
        script.write_text(SCRIPT.format(names=names or {}))
        process, _ = crawl("-a", f"seed={seed}", *arguments, program=(str(script),), **options)
        assert "Traceback" not in process.stderr
        return process

    return run


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://a.test/", "s3://bucket/key"])
def test_other_schemes_are_refused(url):
    with pytest.raises(FetchRefusedError, match="not http or https; to allow it, add -s TRES_"):
        asyncio.run(PrivateAddressMiddleware().process_request(Request(url)))


def test_data_url_leads_nowhere():
    asyncio.run(PrivateAddressMiddleware().process_request(Request("data:text/html,soup")))


def hostile(port):
    """Return URLs of this machine in every notation, and other URLs that no link should reach."""
    hosts = ["127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f.1", "017700000001", "[::1]"]
    hosts += ["[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "0", "localhost", "a.localhost."]
    hosts += ["127\u30020\u30020\u30021", "\u2460\u2461\u2466.0.0.1", "u:p@127.0.0.1"]
    urls = [f"http://{host}:{port}/" for host in hosts]
    return [
        *urls,
        "http://169.254.169.254/latest/",
        "http://metadata.google.internal/",
        "http://nas/",
    ]


def links(urls):
    return "".join(f'<p><a href="{url}">recipe</a></p>' for url in urls)


@pytest.mark.long
def test_private_links_are_refused_behind_proxy(crawl, pages):
    urls = hostile(pages.port)
    pages.add("http://a.test/", links(["http://a.test/moved", "http://b.test/", *urls]))
    pages.add("http://a.test/moved", status=302, Location=f"http://127.0.0.1:{pages.port}/secret")
    pages.add("http://b.test/robots.txt", status=302, Location="http://127.0.0.1/robots.txt")
    process = crawl("http://a.test/", pages=pages)
    asked = {url for _, url in pages.requests}
    assert asked == {
        *("http://a.test/", "http://a.test/robots.txt", "http://a.test/moved"),
        *("http://b.test/", "http://b.test/robots.txt"),
    }
    assert process.stderr.count("TRES_PRIVATE_ADDRESSES=1") == 1


@pytest.mark.long
def test_a_setting_allows_them(crawl, pages):
    pages.add("http://a.test/", links([f"http://127.0.0.1:{pages.port}/"]))
    crawl("http://a.test/", "-a", "private_addresses=1", pages=pages)
    assert pages.fetched() == ["http://a.test/", f"http://127.0.0.1:{pages.port}/"]


@pytest.mark.parametrize("allowed", [0, 1])
def test_private_name_is_refused(crawl, pages, allowed):
    pages.add("/", "<p>text</p>")
    seed = f"http://intranet.test:{pages.port}/"
    names = {"intranet.test": ["127.0.0.1"]}
    process = crawl(seed, "-a", f"private_addresses={allowed}", names=names)
    assert pages.fetched() == ["/"] * allowed
    assert process.returncode == 1 - allowed
    refused = "intranet.test is 127.0.0.1, which is not on the public internet"
    assert (refused in process.stderr) == (not allowed)


def test_rebound_name_is_not_connected(crawl, pages):
    pages.add("/", "<p>text</p>")
    seed = f"http://rebound.test:{pages.port}/"
    names = {"rebound.test": [PUBLIC, "127.0.0.1"]}
    process = crawl(seed, "-s", "DNSCACHE_ENABLED=0", "-s", "ROBOTSTXT_OBEY=0", names=names)
    assert pages.requests == []
    assert re.search(r"No seed brought a page \(.*CannotResolveHostError\)", process.stderr)


@pytest.mark.long
def test_local_proxy_may_have_a_name(crawl, pages, monkeypatch):
    pages.add("http://a.test/", links([f"http://localhost:{pages.port}/", "http://b.test/"]))
    monkeypatch.setenv("http_proxy", f"http://proxy.test:{pages.port}")
    crawl("http://a.test/", names={"proxy.test": ["127.0.0.1"]})
    assert pages.fetched() == ["http://a.test/", "http://b.test/"]


def test_url_list_is_not_trusted(tres, tmp_path, pages):
    pages.add("/", "<p>text</p>")
    pages.add("http://a.test/", status=302, Location=f"http://127.0.0.1:{pages.port}/")
    urls = tmp_path / "list.urls"
    urls.write_text(f"http://127.0.0.1:{pages.port}/\nhttp://a.test/\n")
    process = tres("classify", "food", urls, "-s", "DOWNLOAD_DELAY=0", pages=pages)
    assert [url for _, url in pages.requests if "127" in url] == []
    assert process.stderr.count("TRES_PRIVATE_ADDRESSES=1") == 2
    assert process.returncode == 1
