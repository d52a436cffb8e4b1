"""Crawls in shards that lose their disks, and options that shards do not know."""

import json
import os
import shutil
import signal
from collections import Counter

import pytest
from sharded_process import (
    PROGRAM,
    ShardedCrawl,
    booked_pages,
    ended,
    owners,
    served,
    urls_of,
    words,
)
from soup import FOOD, lines_of, link
from verifier import Site

from tres_scrapy.downloader.identity import KeyFolder
from tres_scrapy.url.canonical import domain_of

pytest.importorskip("ray", reason="needs the extra cluster")
pytestmark = pytest.mark.slow


def test_crawl_goes_on_without_its_disks(tmp_path):
    """A shard is killed and its disk is lost; later those of all processes are."""
    more = "--snapshots", f"file://{tmp_path}/store", "--snapshot-interval", "1"
    log, job = tmp_path / "log", tmp_path / "job"
    crawl = ShardedCrawl(tmp_path, *words(*more, "--web-log", str(log), pages=120))
    crawl.until(
        lambda: list(tmp_path.glob("store/shard-0/*.snapshot")) and served(log).total() > 40,
        "no snapshot comes",
    )
    for shard in owners(job / "shard-0"):
        os.kill(shard, signal.SIGKILL)
    shutil.rmtree(job / "shard-0")
    assert "120/120 pages" in ended(crawl)
    pages = booked_pages(job)
    assert len(pages) == len(dict(pages)) == 120
    first = urls_of(job / "food.jsonl")
    assert first
    assert len(first) == len(set(first))
    finals = {item["final_url"] for item in lines_of(job / "food.jsonl")}
    assert finals == {url for url, relevant in pages if relevant}
    shutil.rmtree(job)
    assert "140/140 pages" in ended(ShardedCrawl(tmp_path, *words(*more, pages=140)))
    urls = urls_of(job / "food.jsonl")
    assert len(urls) == len(set(urls))
    assert set(first) <= set(urls)
    domains = Counter(domain_of(url) for url, _ in booked_pages(job))  # after redirects
    assert domains.total() == 140
    assert max(domains.values()) <= 5


def test_every_shard_signs(tmp_path, pages):
    """Both own a domain; the key is in no file but its own."""
    folder = KeyFolder(tmp_path / "identity")
    key = folder.add("https://crawler.test")
    links = "".join(link(f"http://{host}.test/", "soup") for host in "abcdefgh")
    for host in "abcdefgh":
        pages.add(f"http://{host}.test/", FOOD + links)
    more = "--web-proxy", f"http://127.0.0.1:{pages.port}", "--identity", "identity/" + key.name
    ended(ShardedCrawl(tmp_path, *words("http://a.test/", *more, pages=8)))
    site = Site(**{"crawler.test": folder.directory.read_bytes()})
    for url, headers in pages.heads:
        site.check(url, headers)
    for shard in (0, 1):
        assert lines_of(tmp_path / "job" / f"shard-{shard}" / "pages.jsonl")
    secret = json.loads(key.read_text())["d"].encode()
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != key]
    assert written
    assert not [path for path in written if secret in path.read_bytes()]


def test_one_shard_learns_by_itself(tmp_path):
    assert "30/30 pages" in ended(ShardedCrawl(tmp_path, *words(shards=1, pages=30)))
    assert not (tmp_path / "job" / "learner").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--policy", "random"], "a crawl in shards needs --policy tres"),
        (["--max-per-domain", "5_2"], "a crawl in shards needs one number"),
        (["-s", "JOBDIR=x"], "a crawl in shards has --job"),
        (["-s", "CONCURRENT_REQUESTS=x"], "CONCURRENT_REQUESTS 'x': must be a number"),
        (["-s", "LOG_LEVEL=loud"], "LOG_LEVEL 'loud': must be one of CRITICAL"),
        (
            ["--snapshots", "foo://x"],
            "--snapshots foo://x: Protocol not known: foo",
        ),
        (["--snapshots", "file:///dev/null"], "--snapshots file:///dev/null: "),
        (["--dashboard", "1", "--no-record"], "it needs --record"),
        (["--metrics-port", "70000"], "metrics-port"),
        (["--warc-file", "a.warc.gz"], "each shard writes its own archive"),
    ],
)
def test_options_that_shards_do_not_know(scrapy, tmp_path, more, said):
    crawl = scrapy(*words(*more), program=("-c", PROGRAM), project=tmp_path)
    assert crawl.returncode == 1
    assert said in crawl.stderr
    assert "Traceback" not in crawl.stderr


def test_folder_of_another_kind_of_crawl_is_refused(scrapy, tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "tres.run").touch()
    crawl = scrapy(*words(), program=("-c", PROGRAM), project=tmp_path)
    assert crawl.returncode == 1
    assert "is the JOBDIR of a crawl without shards: give another folder" in crawl.stderr


def test_interval_of_snapshots_is_a_second_or_more(scrapy, tmp_path):
    more = "--snapshot-interval", "0"
    crawl = scrapy(*words(*more), program=("-c", PROGRAM), project=tmp_path)
    assert crawl.returncode == 2
    assert crawl.stderr == (
        "tres cluster crawl: --snapshot-interval 0 must be 1 second or more; "
        "see tres cluster crawl --help\n"
    )
