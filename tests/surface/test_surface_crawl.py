"""`scrapy crawl surface`, run as a user runs it."""

import re

import pytest
from conftest import PROJECT
from fpdf import FPDF
from soup import lines_of

WEB = "web=webs.deep:DeepWeb"  # of benchmarks/


@pytest.fixture(autouse=True)
def benchmarks_are_found(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "benchmarks"))


def surface(scrapy, *arguments, **options):
    return scrapy(
        *("crawl", "surface", "-a", "topic=food", "-s", "DOWNLOAD_DELAY=0"), *arguments, **options
    )


@pytest.mark.long
def test_found_records_join_frontier(scrapy, tmp_path):
    output, log = tmp_path / "pages.jsonl", tmp_path / "web.jsonl"
    process = surface(
        scrapy,
        *("-a", WEB, "-a", "pages=30", "-a", "surface_queries=4", "-a", f"output={output}"),
        *("-a", f"web_log={log}"),
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    assert "library.test: asking library.test/find (found by form)" in process.stderr
    asked = [line for line in lines_of(log) if line["kind"] == "search"]
    returned = {number for line in asked for number in line["returned"]}
    fetched = {line["record"] for line in lines_of(log) if "record" in line}
    assert returned
    assert fetched
    assert fetched <= returned, "records are linked from nowhere else"
    items = lines_of(output)
    assert any("/record/" in item["url"] for item in items)
    for item in items:
        assert item["path"][0] == "http://library.test/"


@pytest.mark.long
def test_links_of_records_alone_are_listed(scrapy, tmp_path):
    records, log = tmp_path / "records.jsonl", tmp_path / "web.jsonl"
    process = surface(
        scrapy,
        *("-a", WEB, "-a", "surface_follow=0", "-a", "surface_queries=6"),
        *("-a", f"web_log={log}", "-a", f"output={tmp_path / 'pages.jsonl'}", "-O", records),
        *("-a", "seed=http://archive.test/,http://registry.test/,http://vault.test/"),
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    assert "registry.test is searched by POST only: -a surface_post=1 allows it" in process.stderr
    assert "vault.test: robots.txt forbids its search box" in process.stderr
    assert re.search(r"archive.test: left after 6 queries .*\(query_budget\)", process.stderr)
    listed = {int(item["url"].split("/record/")[1].split("-")[0]) for item in lines_of(records)}
    asked = [line for line in lines_of(log) if line["kind"] == "search"]
    assert listed == {number for line in asked for number in line["returned"]}
    assert all("archive.test" in line["url"] for line in asked)
    assert not any("record" in line for line in lines_of(log))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-s", "JOBDIR=job"], "JOBDIR: a surface crawl cannot be resumed"),
        (["-a", "surface_queries=0"], "must be a whole number of 1 or more"),
    ],
)
def test_surface_error_is_one_line(scrapy, arguments, said):
    process = surface(scrapy, "-a", "seed=http://library.test/", *arguments)
    assert process.returncode == 1
    assert said in process.stderr.splitlines()[-1]
    assert "Traceback" not in process.stderr


def pdf():
    document = FPDF()
    document.add_page()
    return bytes(document.output())


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            ("text/html", b"<title>Soup</title><p>Soup with onions.</p>"),
            "has no search box that can",
        ),
        (("application/pdf", pdf()), "is a document without a search box"),
    ],
)
def test_missing_search_box_fails(scrapy, pages, tmp_path, answer, said):
    pages.answers["http://a.test/"] = (200, {"Content-Type": answer[0]}, answer[1])
    process = surface(
        scrapy, "-a", "seed=http://a.test/", "-a", f"output={tmp_path / 'o.jsonl'}", pages=pages
    )
    assert process.returncode == 1
    assert f"a.test {said}" in process.stderr
    assert "Traceback" not in process.stderr
