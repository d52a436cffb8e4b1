"""A foreign Scrapy project with TRES in its ADDONS: tests/example_project/."""

import csv
import json
import os
import re
import subprocess
from collections import Counter

import pytest
from conftest import PROJECT, interpreter

PAGES = 80
KITCHEN = PROJECT / "tests" / "example_project"


@pytest.fixture
def kitchen(monkeypatch, scrapy):
    """Run `scrapy` in the example project, which is outside the checkout."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    return lambda *arguments, **options: scrapy(*arguments, project=KITCHEN, **options)


def served_pages(log):
    """Return whether each page that the web served is relevant, in order."""
    from tres_scrapy.lab.webs.web import Answer, Count  # noqa: PLC0415 - the lab may be deleted

    count, relevant = Count(None), []
    for line in log.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        before = count.pages
        answer = Answer(row["status"], b"", (), row["kind"], row["relevant"], row["site_kind"])
        count.add(row["url"], answer, row["time"])
        if count.pages > before:
            relevant.append(row["relevant"])
    return relevant


def crawl_synthetic_web(spider, tmp_path, kitchen):
    """Crawl by a spider and return the items, the true labels of what was served, and the log."""
    pytest.importorskip("tres_scrapy.lab", reason="the web is one of its webs")
    log, feed = tmp_path / f"{spider}.log", tmp_path / f"{spider}.jsonl"
    command = [
        interpreter().path,
        "-m",
        "tres_scrapy.cli.main",
        "web",
        "--json",
        "synthetic",
        "--log",
        log,
    ]
    with subprocess.Popen(
        command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as web:
        started = json.loads(web.stdout.readline())
        os.environ["http_proxy"] = f"http://127.0.0.1:{started['port']}"
        process = kitchen(
            *("crawl", spider, "-a", f"start={started['seeds'][0]}", "-o", feed),
            *("-s", f"CLOSESPIDER_PAGECOUNT={2 * PAGES}", "-s", "LOG_LEVEL=INFO"),
        )
        web.communicate()
    assert process.returncode == 0, process.stderr
    items = [json.loads(line) for line in feed.read_text(encoding="utf-8").splitlines()]
    return items, served_pages(log)[:PAGES], process.stderr


@pytest.mark.long
def test_one_line_makes_crawler_focused(tmp_path, kitchen, monkeypatch):
    monkeypatch.setenv("http_proxy", "")
    led, pages, log = crawl_synthetic_web("recipes", tmp_path, kitchen)
    alone, plain_pages, plain_log = crawl_synthetic_web("breadth", tmp_path, kitchen)
    assert len(pages) == len(plain_pages) == PAGES
    assert sum(pages) > 2 * sum(plain_pages)
    assert "'finish_reason': 'closespider_pagecount'" in log
    assert "'finish_reason': 'closespider_pagecount'" in plain_log
    assert {item["relevant"] for item in led} >= {True, False}  # None: a "not found" page
    assert {item["relevant"] for item in alone} == {None}
    assert {item["course"] for item in led + alone} == {"main"}
    assert "'tres/pages'" not in plain_log


MENU = {
    "/": ("/soup", "/cake?session=1", "/cake?session=2", "/gone"),
    "/soup": ("/bread", "/"),
    "/cake?session=1": (),
    "/bread": ("/too-deep",),
    "/too-deep": (),
}
HOST = "http://inn.test"


@pytest.fixture
def menu(pages):
    """A site of a few pages."""
    for path, links in MENU.items():
        text = "".join(f'<a href="{link}">to {link}</a> ' for link in links)
        pages.add(HOST + path, f"<title>{path}</title><p>A recipe for {path}: {text}")
    pages.add(f"{HOST}/gone", status=503)
    return pages


def test_project_keeps_its_own_ways(tmp_path, kitchen, menu):
    """Two crawls of one JOBDIR, the first ended by a limit of the project."""
    feeds = {
        tmp_path / "feed.jsonl": {"format": "jsonlines"},
        tmp_path / "feed.csv": {"format": "csv"},
        f"s3://127.0.0.1:{menu.port}/feed-%(batch_id)d.json": {
            "format": "json",
            "batch_item_count": 100,
        },
    }
    command = (
        *("crawl", "notes", "-a", f"start={HOST}/", "-a", "cook=Ada"),
        *("-s", f"FEEDS={json.dumps({str(uri): options for uri, options in feeds.items()})}"),
        *("-s", f"JOBDIR={tmp_path / 'job'}", "-s", f"HTTPCACHE_DIR={tmp_path / 'cache'}"),
        *("-s", "LOG_LEVEL=INFO", "-s", "CONCURRENT_REQUESTS=1", "-s", "TRES_REST=0.01"),
    )
    first = kitchen(*command, "-s", "CLOSESPIDER_ITEMCOUNT=2", pages=menu)
    assert first.returncode == 0, first.stderr
    assert "'kitchen/closed': 'closespider_itemcount'" in first.stderr
    second = kitchen(*command, pages=menu)
    assert second.returncode == 0, second.stderr
    assert "'kitchen/closed': 'finished'" in second.stderr
    assert "Traceback" not in first.stderr + second.stderr

    fetched = menu.fetched()
    assert set(fetched) == {f"{HOST}{path}" for path in REACHED}
    assert {url for url, times in Counter(fetched).items() if times > 1} == {f"{HOST}/gone"}
    lines = (tmp_path / "feed.jsonl").read_text(encoding="utf-8").splitlines()
    items = {(item["url"], item["course"]): item for item in map(json.loads, lines)}
    assert set(items) == {(f"{HOST}{path}", course) for path, course in ITEMS}
    bread = items[f"{HOST}/bread", "main"]
    assert bread == {
        "url": f"{HOST}/bread",
        "course": "main",
        "note": "TO /BREAD",  # by the pipeline
        "cook": "Ada",
        "depth": 2,
        "flags": "tasted",  # by the downloader middleware
        "source": f"{HOST}/bread",  # by the spider middleware
    }
    assert items[f"{HOST}/gone", "main"]["failure"] == "503"  # by the errback
    served = [re.findall(r"'kitchen/served': (\d+)", run.stderr) for run in (first, second)]
    assert sum(int(count) for (count,) in served) == len(lines)
    with (tmp_path / "feed.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["url"] != "url"]
    assert {row["url"] for row in rows} == {item["url"] for item in items.values()}
    assert menu.files
    assert items[f"{HOST}/", "second helping"]["flags"] == "cached tasted"


REACHED = ["/", "/soup", "/cake?session=1", "/bread", "/gone"]
ITEMS = [(path, "main") for path in REACHED[1:]] + [("/", "starter"), ("/", "second helping")]
