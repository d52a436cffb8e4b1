"""Crawls in shards that lose their disks, that sign, and that are one shard."""

import json
import os
import shutil
import signal
from collections import Counter

import pytest
from sharded_process import (
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
pytestmark = pytest.mark.long


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
