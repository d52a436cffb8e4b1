"""`scrapy crawl refresh` as a user types it, over HTTP."""

import json
import os
import sqlite3
import subprocess
from time import monotonic, sleep

import pytest
from conftest import PROJECT, running

QUICK = ("-s", "DOWNLOAD_DELAY=0", "-s", "LOG_LEVEL=INFO", "-a", "min_age=0")
TEXT = " ".join(f"word{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(120))
SMALL = """
from webs.changing import ChangingWeb

def web(topic, *, seed):
    return ChangingWeb(30, seed=seed, day=0.2)
"""
OTHER = " ".join(reversed(TEXT.split()))


def html(text, links=""):
    return (
        f"<html><head><title>T</title></head><body><main><p>{text}</p>{links}</main></body></html>"
    )


@pytest.fixture
def collection(tmp_path):
    def write(*urls, text=TEXT):
        path = tmp_path / "pages.jsonl"
        rows = ({"url": url, "title": "T", "text": text} for url in urls)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def items(path):
    lines = path.with_name(f"{path.stem}.refresh.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_collection_is_kept_fresh(pages, scrapy, collection, tmp_path):
    pages.add("http://a.test/same", html(TEXT))
    pages.add("http://a.test/other", html(OTHER))
    pages.add("http://b.test/gone", status=410)
    pages.add("http://b.test/down", status=503)
    pages.add("http://b.test/private", html(TEXT))
    pages.add(
        "http://b.test/robots.txt", "User-agent: *\nDisallow: /private", Content_Type="text/plain"
    )
    pages.add("http://c.test/moved", status=301, Location="http://c.test/here")
    pages.add("http://c.test/here", html(f"{TEXT} 17 visitors"))
    urls = [url for url in pages.answers if not url.endswith(("robots.txt", "here"))]
    path = collection(*urls)
    done = scrapy("crawl", "refresh", "-a", f"collection={path}", *QUICK, pages=pages)
    assert done.returncode == 0, done.stderr
    found = {item["url"]: item for item in items(path)}
    assert {url: item["change"] for url, item in found.items()} == {
        "http://a.test/same": "unchanged",
        "http://a.test/other": "changed",
        "http://b.test/gone": "error",
        "http://b.test/down": "error",
        "http://c.test/moved": "minor",
    }
    assert found["http://a.test/other"]["text"].startswith("wordpe")
    assert found["http://c.test/moved"]["final_url"] == "http://c.test/here"
    assert "http://b.test/private" not in pages.fetched()
    assert pages.fetched().count("http://b.test/down") == 1, "no retry spends the budget"
    assert "5 of 6 requests: 1 changed, 2 error, 1 minor, 1 unchanged" in done.stderr
    report = (tmp_path / "pages.refresh.html").read_text()
    assert "6 pages, 5 answers so far" in report
    assert report.count('data-figure="') == 3


def test_next_run_sends_validators(pages, scrapy, collection, tmp_path):
    url, found = "http://a.test/x", tmp_path / "found.txt"
    path = collection(url, text=f"{TEXT} one")
    arguments = ("crawl", "refresh", "-a", f"collection={path}", "-a", f"found={found}", *QUICK)
    pages.add(url, html(TEXT, '<a href="/1">one</a>'), ETag='"1"')
    assert scrapy(*arguments, pages=pages).returncode == 0
    pages.add(url, html(OTHER, '<a href="/1">one</a> <a href="/2">two</a>'), ETag='"2"')
    assert scrapy(*arguments, pages=pages).returncode == 0
    assert found.read_text() == "http://a.test/2\n"
    connection = sqlite3.connect(tmp_path / "pages.refresh.sqlite")
    visits = connection.execute("SELECT change FROM visit ORDER BY id").fetchall()
    (tag,) = connection.execute("SELECT etag FROM page").fetchone()
    connection.close()
    assert [change for (change,) in visits] == ["unchanged", "changed"]
    assert tag == '"2"'


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "no collection: add -a collection=FILE"),
        (("collection=no.jsonl",), "no.jsonl cannot be read"),
        (("collection=x", "horizn=1d"), "unknown argument -a horizn; did you mean horizon?"),
        (("collection=x", "horizon=soon"), "(-a horizon=) 'soon': must be a time such as 90s"),
        (("collection=x", "min_age=2d", "max_age=1d"), "must not be above max_age"),
        (("collection=x", "watch=1"), "-a watch=1 needs a horizon"),
    ],
)
def test_refresh_error_is_one_line(arguments, said):
    """The command prints one line and ends with status 1; it runs in this process."""
    from scrapy.crawler import Crawler  # noqa: PLC0415

    from tres_scrapy.refresh.spider import RefreshSpider  # noqa: PLC0415
    from tres_scrapy.url.message import TresError  # noqa: PLC0415

    given = dict(argument.split("=") for argument in arguments)
    with pytest.raises(TresError) as raised:
        RefreshSpider.from_crawler(Crawler(RefreshSpider), **given)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


def test_bad_start_has_no_traceback(scrapy):
    done = scrapy("crawl", "refresh", "-a", "collection=no.jsonl")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("scrapy crawl refresh: no.jsonl cannot be read")
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_killed_refresh_loses_nothing(pages, scrapy, collection, tmp_path):
    """After kill -9 during a run, no request exceeds the budget and no item is lost."""
    urls = [f"http://h{i % 4}.test/{i}" for i in range(60)]
    for url in urls:
        pages.add(url, html(OTHER))
    pages.silent = set(urls[::4])  # a host that does not answer: the run cannot end
    path = collection(*urls)
    command = ["crawl", "refresh", "-a", f"collection={path}", *QUICK]
    proxy = {"http_proxy": f"http://127.0.0.1:{pages.port}"}
    with running(*command, env=os.environ | proxy, stderr=subprocess.DEVNULL):
        until = monotonic() + 100
        while len(pages.fetched()) < 20 and monotonic() < until:
            sleep(0.01)
    pages.silent = set()
    before = len(pages.fetched())
    assert 20 <= before < 60
    done = scrapy(*command, pages=pages)
    assert done.returncode == 0, done.stderr
    assert "resuming the previous run" in done.stderr
    connection = sqlite3.connect(tmp_path / "pages.refresh.sqlite")
    changes = dict(connection.execute("SELECT change, count(*) FROM visit GROUP BY change"))
    (waiting,) = connection.execute("SELECT count(*) FROM outbox").fetchone()
    connection.close()
    assert changes["changed"] + changes.get("lost", 0) == 60, "the budget"
    assert waiting == 0
    written = items(path)
    assert len(written) == len({item["visit"] for item in written}) == changes["changed"]
    assert len(pages.fetched()) <= 60


@pytest.mark.long
def test_changing_web_without_a_network(scrapy, tmp_path, monkeypatch):
    changing = pytest.importorskip("webs.changing")
    path = tmp_path / "pages.jsonl"
    rows = changing.initial(changing.ChangingWeb(30, seed=1))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "small.py").write_text(SMALL)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{PROJECT / 'benchmarks'}")
    done = scrapy(
        *("crawl", "refresh", "-a", f"collection={path}", *QUICK, "-a", "budget=60"),
        *("-a", "horizon=6s", "-a", "retry=1"),
        *("-a", "web=small:web", "-a", "web_seed=1"),
    )
    assert done.returncode == 0, done.stderr
    found = items(path)
    assert 30 < len(found) <= 60
    assert {"changed", "unchanged"} <= {item["change"] for item in found}


def test_watch_starts_a_new_horizon(collection, monkeypatch):
    from scrapy.crawler import Crawler  # noqa: PLC0415

    from tres_scrapy.refresh.main_text import copy_of  # noqa: PLC0415
    from tres_scrapy.refresh.spider import RefreshSpider  # noqa: PLC0415
    from tres_scrapy.refresh.visit import PageAnswer  # noqa: PLC0415

    given = {"collection": str(collection("http://a.test/1", "http://b.test/2")), "watch": "1"}
    spider = RefreshSpider.from_crawler(
        Crawler(RefreshSpider), **given, budget="2", horizon="10s", min_age="0"
    )
    job = spider.job
    first = job.refresher
    begun = clock = first.run.started
    monkeypatch.setattr("tres_scrapy.refresh.refresher.time", lambda: clock)
    requests = []
    for clock in (begun, begun + 5):
        assert not job.over()
        requests.append(job.refresher.next(clock))
    answer = PageAnswer(200, copy=copy_of("T", OTHER))
    assert first.book(requests[0], answer, clock).change == "changed"
    clock += 6
    assert not job.over()
    assert job.refresher is first, "an answer is still to come"
    first.book(requests[1], answer, clock)
    assert not job.over()
    second = job.refresher
    assert (second.run.id, second.run.started, second.run.sent) == (first.run.id + 1, clock, 0)
    assert [row.changes for row in second.rows] == [1, 1], "what was learnt stays"
    assert second.next(clock) is not None
    job.store.close()
