"""A crawl in shards is seen and steered as one: live page, metrics, record, report.

It is stopped and resumed, and a shard of the resumed crawl is killed.
"""

import os
import re
import signal
from time import sleep

import pytest
from sharded_process import PROGRAM, ShardedCrawl, booked_pages, ended, owners, served, urls_of
from sharded_process import words as words_of

from tres_scrapy.report.record import Record

pytest.importorskip("ray", reason="needs the extra cluster")
pytestmark = pytest.mark.long
MORE = 80  # pages of the resumed crawl


def words(number, *more, **options):
    """Return the command of the first or second start; each has a log of its web."""
    return words_of("--web-log", f"log-{number}", *more, **options)


@pytest.fixture(scope="module")
def crawl(tmp_path_factory):
    """A crawl without an end, with its live page."""
    folder = tmp_path_factory.mktemp("crawl")
    crawl = ShardedCrawl(folder, *words(1, "--dashboard", "1", "--metrics-port", "0"))
    yield crawl
    if crawl.process.poll() is None:
        crawl.process.terminate()
        crawl.ended()


@pytest.fixture(scope="module")
def stopped(crawl):
    """The same crawl, stopped after 60 pages or more."""
    crawl.until(lambda: crawl.state()["pages"] > 60, "no pages")
    assert crawl.steer("stop")[0] == 200
    ended(crawl)
    return crawl


@pytest.fixture(scope="module")
def resumed(stopped):
    """The log of the same crawl, resumed; a shard was killed meanwhile."""
    pages = int(stopped.found(r"Stopped after (\d+) pages: the same command resumes it"))
    crawl = ShardedCrawl(stopped.folder, *words(2, pages=pages + MORE))
    crawl.until(lambda: served(crawl.folder / "log-2").total() > MORE // 4, "no pages")
    (shard,) = owners(crawl.folder / "job" / "shard-0")
    os.kill(shard, signal.SIGKILL)
    return ended(crawl)


def logs(crawl):
    return "".join(path.read_text() for path in crawl.folder.glob("job/logs/shard-*.log"))


def paused(crawl):
    """Pause, and return the pages when open requests are done and no report changes them."""
    assert crawl.steer("pause")[0] == 200
    crawl.until(lambda: logs(crawl).count("Command pause") == 2, "a shard is not paused")
    crawl.until(lambda: crawl.state()["under_way"] == 0, "requests stay open")
    crawl.until(lambda: pages_after(crawl, 0) == pages_after(crawl, 2), "pages still come")
    return crawl.state()["pages"]


def pages_after(crawl, seconds):
    sleep(seconds)
    return crawl.state()["pages"]


def test_whole_crawl_is_seen_and_steered(crawl):
    crawl.until(lambda: crawl.state()["pages"] > 60, "no pages")
    crawl.until(
        lambda: {row["state"] for row in crawl.state()["shards"]} == {"running"}, "a shard is not"
    )
    state = crawl.state()
    assert [row["shard"] for row in state["shards"]] == [0, 1]
    assert sum(row["pages"] for row in state["shards"]) == state["pages"]
    pages = crawl.until(lambda: crawl.state()["recent"], "no recent page")
    assert crawl.ask(f"/page?step={pages[0]['step']}")[1]["features"]
    assert crawl.until(lambda: crawl.ask("/figures?step=-1")[1]["charts"], "no chart")
    before, asked = paused(crawl), served(crawl.folder / "log-1")
    assert crawl.state()["status"] == "paused"
    assert pages_after(crawl, 2) == before
    assert served(crawl.folder / "log-1") == asked
    said = crawl.metrics()
    shards = [float(said[f'tres_shard_pages_total{{shard="{n}"}}']) for n in (0, 1)]
    assert float(said["tres_pages_total"]) == sum(shards) == before
    seed = "http://not-seen-before.test/"  # its domain cannot be full
    assert crawl.steer("seed", seed) == (200, {"said": f"Next: {seed}."})
    assert crawl.steer("max", "2") == (200, {"said": "MAX is 2 from now on."})
    crawl.until(lambda: logs(crawl).count("Command change_max: MAX is 2") == 2, "MAX stays")
    assert logs(crawl).count(f"Command add_seed: Next: {seed}") == 1  # only its owner
    assert crawl.state()["max"] == "2"
    crawl.steer("resume")
    crawl.until(lambda: crawl.state()["pages"] > before, "it is not resumed")


def test_stopped_crawl_has_its_record(stopped):
    with Record(stopped.folder / "job" / "tres.run") as record:
        assert record.meta()["reason"] == "shutdown"
        assert record.curve()[-1].pages > 60
        assert record.web_count()["pages"] > 60  # it may know a page better than the judge
    assert "job/tres.html" in stopped.text


def test_resumed_crawl_fetches_exactly_t_pages(stopped, resumed):
    pages = len(booked_pages(stopped.folder / "job"))
    assert f"{pages}/{pages} pages" in resumed
    urls = urls_of(stopped.folder / "job" / "food.jsonl")
    assert urls
    assert len(urls) == len(set(urls))
    for number in range(2):  # both have worked
        assert (stopped.folder / "job" / f"shard-{number}" / "pages.jsonl").stat().st_size
    first, second = (served(stopped.folder / f"log-{number}") for number in (1, 2))
    assert max(first.values()) == 1
    assert not first.keys() & second.keys()


def test_ended_crawl_is_one_crawl(stopped, resumed):
    job = stopped.folder / "job"
    pages = len(booked_pages(job))
    assert "It ran in 2 shards" in (job / "tres.html").read_text()
    assert not list(job.glob("shard-*/*.html"))
    with Record(job / "tres.run") as record:
        counts = record.count()
        assert sum(counts.get(kind, 0) for kind in ("relevant", "irrelevant", "copy")) == pages
        trails = [record.trail(page) for page in record.last(1000)[::-1]]
    assert all(trail[0].parent is None for trail in trails)
    assert any(len({hop.row % 2 for hop in trail}) == 2 for trail in trails)


def test_commands_read_the_crawl_as_one(scrapy, stopped, resumed):
    job = stopped.folder / "job"
    pages = len(booked_pages(job))
    with Record(job / "tres.run") as record:
        last = record.last(1)[0]

    def run(*words):
        return scrapy(*words, program=("-c", PROGRAM), project=stopped.folder)

    listed = run()
    found = re.findall(r"ended +(\S+): (\d+) of (\d+) pages", listed.stdout + listed.stderr)
    assert found == [("job/tres.run", str(pages), str(pages))]
    explained = run("explain", "job", last.url)
    assert explained.returncode == 0, explained.stderr
    assert f"Shard: {last.row % 2} of 2" in explained.stdout
    reported = run("report", "job", "-o", "again.html")
    assert reported.returncode == 0, reported.stderr
    assert f"{pages} pages" in (stopped.folder / "again.html").read_text()
