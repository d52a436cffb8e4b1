from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from scrapy.settings import Settings

from tres_scrapy.page.document_file import Unreadable, read_pages
from tres_scrapy.spiders.fetch import fetch_lists, read_urls

RUN = """
import sys
from scrapy.utils.project import get_project_settings
from tres_scrapy.spiders.fetch import fetch_lists
settings = get_project_settings()
for name in ("DOWNLOAD_DELAY", "AUTOTHROTTLE_START_DELAY", "RETRY_TIMES"):
    settings.set(name, 0, "cmdline")
print(*fetch_lists(sys.argv[1:], settings), sep="\\n")
"""


@pytest.fixture
def fetch(scrapy, pages):
    """Fetch lists in a separate process, because Scrapy runs only once per process."""
    return lambda *lists: scrapy(*lists, pages=pages, program=("-c", RUN))


def lines(path: Path) -> dict[str, dict[str, str]]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert len({record["url"] for record in records}) == len(records)
    return {record["url"]: record for record in records}


def test_a_list_holds_urls_only(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_text("# food\n\nhttp://a.org\n  HTTP://A.org/ \nhttps://b.org/x#y\n")
    assert read_urls(path) == ["http://a.org/", "https://b.org/x"]
    path.write_text("Wine and cheese\n\nare on the table.\n")
    assert read_urls(path) == []
    assert read_urls(tmp_path) == read_urls(tmp_path / "missing.txt") == []


def test_list_may_begin_with_mark(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("http://a.org/1\n", encoding="utf-8-sig")
    assert read_urls(tmp_path / "list.txt") == ["http://a.org/1"]


@pytest.mark.parametrize("lines", ["http://a.org\nb.org/x\nc.org", "# food\nb.org/x\nhttp://a.org"])
def test_bad_line_keeps_the_list(tmp_path: Path, lines: str) -> None:
    (tmp_path / "list.txt").write_text(lines)
    with pytest.raises(ValueError, match=r"list.txt, line 2: 'b.org/x' must be an http\(s\) URL"):
        fetch_lists([str(tmp_path / "list.txt")], Settings())


@pytest.mark.parametrize(
    ("text", "match"), [("milk", "line 1: 'milk'"), ("# none", "at least one")]
)
def test_urls_file_must_be_list(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "list.urls").write_text(text)
    with pytest.raises(ValueError, match=match):
        read_urls(tmp_path / "list.urls")


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("milk")
    selections = [str(tmp_path), str(tmp_path / "text.txt"), "pages.jsonl:label=food"]
    assert fetch_lists(selections, Settings()) == selections


def test_pages_once_and_failures_named(tmp_path: Path, pages, fetch) -> None:
    pages.add("http://a.org/1", "<p>caf\u00e9")
    pages.add("http://a.org/2", "<p>milk")
    pages.add("http://a.org/private", "<p>secret")
    pages.add("http://a.org/robots.txt", "User-agent: *\nDisallow: /private")
    pages.add("http://b.org/paper", "%PDF-1.4", Content_Type="application/pdf")
    pages.add("http://c.org/", "", status=301, Location="http://a.org/2")
    food, other = tmp_path / "food.txt", tmp_path / "other.urls"
    food.write_text("http://a.org/1\nhttp://c.org/\nhttp://a.org/gone\n")
    other.write_text("http://a.org/1\nhttp://a.org/private\nhttp://b.org/paper\n")
    done = fetch(food, other, "pages.jsonl")
    assert done.returncode == 0, done.stderr
    names = done.stdout.splitlines()
    assert names == [
        f"{tmp_path}/food.fetched.jsonl",
        f"{tmp_path}/other.fetched.jsonl",
        "pages.jsonl",
    ]
    found = lines(Path(names[0]))
    assert found["http://a.org/1"]["html"] == "<p>caf\u00e9"
    assert found["http://c.org/"]["html"] == "<p>milk"
    assert found["http://a.org/gone"]["error"] == "HTTP 404"
    assert "robots" in lines(Path(names[1]))["http://a.org/private"]["error"]
    assert lines(Path(names[1]))["http://b.org/paper"]["error"].startswith("cannot be read as PDF")
    assert pages.fetched().count("http://a.org/1") == 1
    made = [*read_pages(Path(names[0]))]
    faults = [str(each) for each in made if isinstance(each, Unreadable)]
    assert faults == ["http://a.org/gone: HTTP 404"]
    assert len(made) == 3


def test_second_run_fetches_missing_pages(tmp_path: Path, pages, fetch) -> None:
    pages.add("http://a.org/2", "<p>milk")
    path, file = tmp_path / "list.txt", tmp_path / "list.fetched.jsonl"
    path.write_text("http://a.org/1\nhttp://a.org/2\n")
    page = json.dumps({"url": "http://a.org/1", "status": 200, "html": "<p>tea"})
    failure = json.dumps({"url": "http://a.org/2", "error": "HTTP 503"})
    file.write_text(f"{page}\n{failure}\n" + '{"url": "http://a.o')  # killed while it wrote
    assert fetch(path).returncode == 0
    assert pages.fetched() == ["http://a.org/2"]
    assert [record["html"] for record in lines(file).values()] == ["<p>tea", "<p>milk"]
    assert fetch_lists([str(path)], Settings()) == [str(file)]


def test_every_request_awaits_robots(tmp_path: Path, pages, fetch) -> None:
    urls = [f"http://a.org/private/{number}" for number in range(8)]
    for url in urls:
        pages.add(url, "<p>secret")
    pages.add("http://a.org/robots.txt", "User-agent: *\nDisallow: /private")
    (tmp_path / "list.txt").write_text("\n".join(urls))
    assert fetch(tmp_path / "list.txt").returncode == 0
    assert pages.fetched() == []


def test_the_signals_are_given_back(tmp_path: Path, pages, scrapy) -> None:
    pages.add("http://a.org/1", "<p>milk")
    (tmp_path / "list.txt").write_text("http://a.org/1")
    handlers = "[signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]"
    program = f"import signal\nbefore = {handlers}\n{RUN}\nassert before == {handlers}"
    done = scrapy(tmp_path / "list.txt", pages=pages, program=("-c", program))
    assert done.returncode == 0, done.stderr
    assert pages.fetched() == ["http://a.org/1"]


def test_pages_are_not_held_in_memory(tmp_path: Path) -> None:
    path, file = tmp_path / "list.txt", tmp_path / "list.fetched.jsonl"
    urls = [f"http://a.org/{number}" for number in range(40)]
    path.write_text("\n".join(urls))
    pages = [json.dumps({"url": url, "html": "milk " * 50_000}) for url in urls]
    file.write_text("\n".join([*pages, pages[0]]))
    tracemalloc.start()
    try:
        fetch_lists([str(path)], Settings())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < file.stat().st_size / 4
    assert file.read_text().splitlines() == pages
    assert {each.name for each in tmp_path.iterdir()} == {path.name, file.name}
