"""`scrapy crawl tres -a warc=...`, run as a user runs it."""

import csv
import gzip
from collections import Counter

import pytest
from soup import FOOD, OTHER, lines_of, link
from warcio.archiveiterator import ArchiveIterator

KILLED = """
import os, runpy
from tres_scrapy.export.archive import Archive
booked = Archive.booked
def die(self, booking):
    booked(self, booking)
    self.booked_before = getattr(self, "booked_before", 0) + 1
    if self.booked_before == 3:
        self.writer._pool.shutdown()
        os.write(self.writer._file.fileno(), b"\\x1f\\x8b")
        os.kill(os.getpid(), 9)
Archive.booked = die
runpy.run_module("scrapy", run_name="__main__")
"""
KILLED_BEFORE_VERDICT = """
import os, runpy
from tres_scrapy.export.archive import Archive
add = Archive.add
async def die(self, row, exchange):
    await add(self, row, exchange)
    if exchange.url == "http://a.test/b":
        self.writer._pool.shutdown()
        os.kill(os.getpid(), 9)
Archive.add = die
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.fixture
def soups(pages):
    """A relevant page with links to relevant and irrelevant pages and all kinds of failures."""
    pages.add(
        "http://a.test/", FOOD.format("leek") + link("/b", "/old", "/gone", "/tax", "/private")
    )
    pages.add(
        "http://a.test/robots.txt", "User-agent: *\nDisallow: /private", Content_Type="text/plain"
    )
    pages.add("http://a.test/old", status=301, Location="http://u:secret@b.test/new")
    pages.add("http://b.test/new", FOOD.format("pea"))
    pages.add("http://a.test/tax", OTHER.format("tax"))
    pages.add("http://a.test/b", Content_Encoding="gzip")
    status, headers, _ = pages.answers["http://a.test/b"]
    pages.answers["http://a.test/b"] = status, headers, gzip.compress(FOOD.format("oat").encode())
    return pages


@pytest.fixture
def run(crawl, soups):
    """Crawl the soups one by one."""
    arguments = ("-a", "seed=http://a.test/", "-s", "CONCURRENT_REQUESTS=1")
    return lambda *more, **options: crawl(*arguments, *more, pages=soups, **options)


def archived(path):
    """Return (type, URL, description) of each record of a file."""
    found = []
    with path.open("rb") as file:
        for record in ArchiveIterator(file, check_digests="raise"):
            block = record.content_stream().read()
            said = record.http_headers and record.http_headers.statusline
            if record.rec_type == "metadata":
                said = dict(line.split(": ", 1) for line in block.decode().splitlines())
            found.append((record.rec_type, record.rec_headers["WARC-Target-URI"], said, block))
    return found


def test_archive_holds_the_whole_crawl(run, tmp_path, soups):
    known = tmp_path / "known.txt"
    known.write_text("http://b.test/elsewhere\n")
    tables = ("-a", "csv=1", "-a", f"known={known}")
    process, items = run("-a", "warc=all", *tables)
    assert process.returncode == 0, process.stderr
    records = archived(tmp_path / "pages.warc.gz")
    answers = {url: (said, block) for kind, url, said, block in records if kind == "response"}
    assert {url: said for url, (said, _) in answers.items()} == {
        "http://a.test/robots.txt": "200 OK",
        "http://a.test/": "200 OK",
        "http://a.test/b": "200 OK",
        "http://a.test/old": "301 Moved Permanently",
        "http://b.test/robots.txt": "404 Not Found",
        "http://b.test/new": "200 OK",
        "http://a.test/gone": "404 Not Found",
        "http://a.test/tax": "200 OK",
    }
    assert answers["http://a.test/b"][1].decode() == FOOD.format("oat")
    kinds = Counter(kind for kind, *_ in records)
    assert (kinds["warcinfo"], kinds["request"], kinds["metadata"]) == (1, 8, 6)
    notes = {url: said for kind, url, said, _ in records if kind == "metadata"}
    assert notes["http://a.test/private"] == {"failure": "robots"}
    assert notes["http://a.test/gone"] == {"failure": "http_404"}
    assert notes["http://a.test/tax"]["relevant"] == "false"
    verdict = {k: v for k, v in notes["http://b.test/new"].items() if k != "probability"}
    assert verdict == {
        "relevant": "true", "duplicate": "false", "language": "en", "depth": "1",
        "via": "http://a.test/",
    }  # fmt: skip
    probabilities = {item["final_url"]: f"{item['probability']:.4f}" for item in items}
    assert probabilities == {
        url: note["probability"] for url, note in notes.items() if note.get("relevant") == "true"
    }
    with (tmp_path / "pages.csv").open(encoding="utf-8", newline="") as lines:
        rows = {row["final_url"]: (row["new"], row["new_domain"]) for row in csv.DictReader(lines)}
    assert rows["http://b.test/new"] == ("true", "false")
    assert rows.keys() == {item["final_url"] for item in items}
    domains = (tmp_path / "pages-domains.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[:4] for line in domains[1:]] == [
        ["a.test", "true", "3", "2"],
        ["b.test", "false", "1", "1"],
    ]
    assert b"secret" not in gzip.decompress((tmp_path / "pages.warc.gz").read_bytes())


@pytest.mark.long
def test_killed_archive_is_resumed(run, tmp_path, soups):
    job = ("-s", f"JOBDIR={tmp_path / 'job'}", "-a", "warc=all")
    process, _ = run(*job, program=("-c", KILLED))
    assert process.returncode == -9
    torn = (tmp_path / "pages.warc.gz").read_bytes()
    assert torn.endswith(b"\x1f\x8b")
    process, _ = run(*job)
    assert process.returncode == 0, process.stderr
    records = archived(tmp_path / "pages.warc.gz")
    assert Counter(kind for kind, *_ in records)["warcinfo"] == 2
    notes = [url for kind, url, *_ in records if kind == "metadata"]
    assert len(notes) == len(set(notes)) == 6, "nothing is missing or twice"


@pytest.mark.long
def test_second_fetch_is_marked(run, tmp_path):
    job = ("-s", f"JOBDIR={tmp_path / 'job'}", "-a", "warc=all")
    process, _ = run(*job, program=("-c", KILLED_BEFORE_VERDICT))
    assert process.returncode == -9
    process, _ = run(*job)
    assert process.returncode == 0, process.stderr
    records = archived(tmp_path / "pages.warc.gz")
    answers = Counter(url for kind, url, *_ in records if kind == "response")
    marked = {
        url for kind, url, said, _ in records if kind == "metadata" and said.get("again") == "true"
    }
    assert marked == {"http://a.test/b"}
    assert {url for url, n in answers.items() if n > 1 and "robots" not in url} == marked


@pytest.mark.long
def test_recorded_crawl_repeats_every_url(crawl, tmp_path):
    same = ("-a", "pages=30", "-a", "random_seed=5", "-s", "CONCURRENT_REQUESTS=1")
    logs = [tmp_path / name for name in ("first.jsonl", "again.jsonl")]
    process, first = crawl(
        *(*same, "-a", "web=synthetic", "-a", "warc=all"),
        *("-s", f"TRES_WEB_LOG={logs[0]}"),
    )
    assert process.returncode == 0, process.stderr
    (tmp_path / "pages.jsonl").unlink()
    process, again = crawl(
        *(*same, "-a", "web=recorded", "-s", f"TRES_WEB_LOG={logs[1]}"),
        *("-a", f"web_data={tmp_path / 'pages.warc.gz'}"),
    )
    assert process.returncode == 0, process.stderr
    orders = [[(line["url"], line["status"]) for line in lines_of(log)] for log in logs]
    assert orders[0] == orders[1]
    assert len(orders[0]) > 30
    assert [item["q_value"] for item in first] == [item["q_value"] for item in again]
    truth = {line["url"] for line in lines_of(logs[1]) if line["relevant"]}
    assert {item["final_url"] for item in again} <= truth
