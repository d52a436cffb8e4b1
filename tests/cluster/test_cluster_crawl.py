"""Whole crawls in shards: real processes, Ray, a synthetic web."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from time import monotonic, sleep

import pytest

from tres_scrapy.url.domain import domain_of

pytest.importorskip("ray", reason="needs the extra cluster")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
PROGRAM = "from tres_scrapy.cli.main import main; main()"


def arguments(folder, *more, pages=80, shards=2):
    return [
        *("cluster", "crawl", "food", "--web", "synthetic", "--max-per-domain", "5"),
        *("--pages", str(pages), "--shards", str(shards)),
        *("--job", "job", "--web-log", str(folder / "log"), *more),
    ]


def start(folder, *more, **options):
    command = [sys.executable, "-c", PROGRAM, *arguments(folder, *more, **options)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=subprocess.STDOUT, text=True
    )


def finished(process):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    return said


def served(folder):
    lines = map(json.loads, (folder / "log").read_text().splitlines())
    return Counter(line["url"] for line in lines if line["kind"] in {"page", "copy"})


def urls_of(output):
    return [json.loads(line)["url"] for line in output.read_text().splitlines()]


def final_urls_of(output):
    return {json.loads(line)["final_url"] for line in output.read_text().splitlines()}


def owners(folder):
    """Return the processes that have a file of a folder open."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has just been closed
            if str(place.readlink()).startswith(f"{folder}/"):
                found.add(int(place.parts[2]))
    return found


def test_two_shards_fetch_exactly_t_pages(tmp_path):
    said = finished(start(tmp_path))
    assert "80/80 pages" in said
    urls = urls_of(tmp_path / "job" / "food.jsonl")
    assert len(urls) == len(set(urls)) > 10  # that few pages tell little of the harvest
    for number in range(2):  # both have worked
        assert (tmp_path / "job" / f"shard-{number}" / "pages.jsonl").stat().st_size
    said = finished(start(tmp_path, pages=110))  # the same command resumes it
    assert "110/110 pages" in said
    assert max(served(tmp_path).values()) == 1


def test_killed_shard_is_resumed(tmp_path):
    crawl, log, until = start(tmp_path, pages=120), tmp_path / "log", monotonic() + 200
    while monotonic() < until and not (log.exists() and log.read_text().count("\n") > 40):
        sleep(0.1)
    (shard,) = owners(tmp_path / "job" / "shard-0")
    os.kill(shard, signal.SIGKILL)
    assert "120/120 pages" in finished(crawl)
    urls = urls_of(tmp_path / "job" / "food.jsonl")
    assert len(urls) == len(set(urls)) > 60


def booked_pages(job):
    """Return the pages of all shards by their journals, and which of them are relevant."""
    found = []
    for journal in job.glob("shard-*/tres.sqlite"):
        with closing(sqlite3.connect(journal)) as read:
            batches = read.execute("SELECT urls FROM batch ORDER BY number")
            urls = [url for (texts,) in batches for url in json.loads(texts)]
            steps = read.execute("SELECT url, relevant FROM step WHERE kind = 'page'")
            found += [(urls[number], relevant) for number, relevant in steps]
    return found


def test_crawl_goes_on_without_its_disks(tmp_path):
    """A shard is killed and its disk is lost; later those of all processes are."""
    more = "--snapshots", f"file://{tmp_path}/store", "--snapshot-interval", "1"
    crawl, job, until = start(tmp_path, *more, pages=120), tmp_path / "job", monotonic() + 200
    while monotonic() < until and not (
        list(tmp_path.glob("store/shard-0/manifest-*")) and sum(served(tmp_path).values()) > 60
    ):
        sleep(0.1)
    for shard in owners(job / "shard-0"):
        os.kill(shard, signal.SIGKILL)
    shutil.rmtree(job / "shard-0")
    assert "120/120 pages" in finished(crawl)
    pages = booked_pages(job)
    assert len(pages) == len(dict(pages)) == 120
    first = urls_of(job / "food.jsonl")
    assert len(first) == len(set(first)) > 60
    assert final_urls_of(job / "food.jsonl") == {url for url, relevant in pages if relevant}
    shutil.rmtree(job)
    assert "140/140 pages" in finished(start(tmp_path, *more, pages=140))
    urls = urls_of(job / "food.jsonl")
    assert len(urls) == len(set(urls)) > len(first)
    assert set(first) <= set(urls)
    domains = Counter(domain_of(url) for url, _ in booked_pages(job))  # after redirects
    assert sum(domains.values()) == 140
    assert max(domains.values()) <= 5


def test_one_shard_learns_by_itself(tmp_path):
    said = finished(start(tmp_path, shards=1, pages=30))
    assert "30/30 pages" in said
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
    ],
)
def test_options_that_shards_do_not_know(scrapy, tmp_path, more, said):
    crawl = scrapy(*arguments(tmp_path, *more), program=("-c", PROGRAM), project=tmp_path)
    assert crawl.returncode == 1
    assert said in crawl.stderr
    assert "Traceback" not in crawl.stderr


def test_interval_of_snapshots_is_a_second_or_more(scrapy, tmp_path):
    more = "--snapshot-interval", "0"
    crawl = scrapy(*arguments(tmp_path, *more), program=("-c", PROGRAM), project=tmp_path)
    assert crawl.returncode == 2
    assert crawl.stderr == (
        "tres cluster crawl: --snapshot-interval 0 must be 1 second or more; "
        "see tres cluster crawl --help\n"
    )
