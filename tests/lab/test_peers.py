"""How benchmarks/peers.py counts, measures and shows crawls, without the other programs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from types import ModuleType

import pytest
from archived import answered
from conftest import PROJECT

from tres_scrapy.export.warc import exchange_records

FETCH = """
import os, sys, time
from urllib.request import ProxyHandler, build_opener
opener = build_opener(ProxyHandler({"http": os.environ["http_proxy"]}))
for url in sys.argv[1:]:
    try:
        opener.open(url).read()
    except OSError:
        pass
if "http://a.test/wait" in sys.argv:
    time.sleep(60)
sys.exit("http://a.test/fail" in sys.argv)
"""


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")


@pytest.fixture
def count() -> ModuleType:
    from peering import count  # noqa: PLC0415 - found only now

    return count


@pytest.fixture
def page() -> ModuleType:
    pytest.importorskip("matplotlib", reason="it draws the plot")
    from peering import page  # noqa: PLC0415 - found only now

    return page


def line(url, *, relevant=False, kind="page", time=0.0):
    return {"url": url, "kind": kind, "relevant": relevant, "time": time}


def tallied(count, *lines, limit=100):
    tally = count.Tally(limit)
    for each in lines:
        tally.add(each)
    return tally


def test_robots_txt_counts_apart(count):
    robots = [line("http://a.test/robots.txt", kind=kind) for kind in ("robots", "unrecorded")]
    tally = tallied(count, *robots, line("http://a.test/", relevant=True))
    assert (tally.requests, tally.robots, tally.found) == (1, 2, [1])


def test_page_counts_once(count):
    urls = ["http://a.test/", "http://a.test", "http://a.test:80/", "http://a.test/2"]
    tally = tallied(count, *(line(url, relevant=True) for url in urls))
    assert (tally.requests, tally.found) == (4, [1, 4])


def test_only_relevant_pages_are_found(count):
    tally = tallied(
        count,
        line("http://a.test/", time=5.0),
        line("http://a.test/old", kind="redirect", relevant=True),
        line("http://a.test/none", kind="unrecorded", time=7.0),
    )
    assert (tally.requests, tally.found, tally.times) == (3, [], [5.0, 7.0])


def test_requests_behind_limit_do_not_count(count):
    lines = [line(f"http://a.test/{number}", relevant=True) for number in range(5)]
    tally = tallied(count, *lines, limit=3)
    assert (tally.requests, tally.found, tally.full) == (3, [1, 2, 3], True)


def test_incomplete_line_is_read_later(count, tmp_path):
    log, tally = tmp_path / "log", count.Tally(10)
    text = json.dumps(line("http://a.test/")) + "\n"
    follower = count.Follower(log)
    follower.read(tally)
    for size in (10, len(text), len(text) + 4):
        log.write_text(text[:size] + text[: size - len(text)] * (size > len(text)))
        follower.read(tally)
    assert tally.requests == 1


def test_relevant_pages_after_requests(count):
    assert [count.relevant_at([1, 4, 4, 9], at) for at in (0, 1, 4, 8, 9)] == [0, 1, 3, 3, 4]


def row(program, topic, found, *, run=1, limit=100, **other):
    return {
        "program": program, "topic": topic, "run": run, "limit": limit, "version": "1",
        "found": found, "requests": limit, "robots": 3, "ended": "all requests", "wall": 10.0,
        "start_wall": 1.0, "processor": 4.0, "start_processor": 2.0, "date": "2026-11-25",
    } | other  # fmt: skip


def written(page, folder, *rows):
    page.write_page(folder, rows, "command")
    return (folder / "peers.md").read_text()


def test_table_sums_topics_and_averages_runs(page, tmp_path):
    text = written(
        page,
        tmp_path,
        row("TRES, ten words", "food", [1, 2, 60]),
        row("TRES, ten words", "food", [1], run=2),
        row("TRES, ten words", "sports", [70, 80]),
        row("Scrapy breadth-first", "food", [30]),
        row("Scrapy breadth-first", "sports", [40]),
    )
    assert "| requests | 12 | 50 | 100 |" in text
    assert "| TRES, ten words | **2** | 2 | **4** |" in text
    assert "| Scrapy breadth-first | 0 | **2** | 2 |" in text
    assert "| 100 | 4 | Scrapy breadth-first, 2 | 2.00 |" in text
    assert "ahead here: food at 50 (Scrapy breadth-first 1," not in text
    assert "sports at 50 (Scrapy breadth-first 1, TRES 0)" in text
    assert "2 runs a topic" in text


def test_table_shows_pages_for_processor_time(page, tmp_path):
    text = written(page, tmp_path, row("Scrapy breadth-first", "food", [30, 40]))
    assert "| Scrapy breadth-first | 100 | 4.0 | 2.0 | 10.0 | 0.5 | 1.0 | 0.2 | 3 |" in text


def test_newest_result_of_run_counts(page, tmp_path):
    rows = [row("TRES, ten words", "food", [1] * n, version=str(n)) for n in (3, 5)]
    old = row("TRES, ten words", "food", [1] * 90, run=2, version="3")
    rows.insert(0, row("TRES, ten words", "food", [1], version="5"))  # the same run, repeated
    text = written(page, tmp_path, old, *rows, row("TRES, ten words", "food", [1], limit=50))
    assert "| TRES, ten words | **5** | **5** | **5** |" in text


def test_missing_topic_leaves_no_figure(page, tmp_path):
    text = written(
        page,
        tmp_path,
        row("TRES, ten words", "food", [1]),
        row("TRES, ten words", "sports", [1]),
        row("Scrapy breadth-first", "food", [1, 2]),
    )
    assert "| Scrapy breadth-first |  |  |  |" in text
    assert "| TRES, ten words | **2** | **2** | **2** |" in text


def test_plot_has_no_background(page, tmp_path):
    written(page, tmp_path, row("TRES, ten words", "food", [1, 2]))
    text = (tmp_path / "peers.svg").read_text()
    assert "TRES, ten words" in text
    assert "fill: #ffffff" not in text


@pytest.fixture
def job(tmp_path):
    from peering.program import Job  # noqa: PLC0415 - found only now

    html = b"<html><title>Leek</title><body>Leeks.</body></html>"
    records = [
        record
        for path in ("", "2", "3")
        for record in exchange_records(answered(f"http://a.test/{path}", html))
    ]
    (tmp_path / "web.warc").write_bytes(b"".join(records))
    (tmp_path / "labels.txt").write_text("http://a.test/2\n")
    return Job(
        topic="leeks",
        number=1,
        limit=3,
        data=tmp_path / "web.warc",
        labels=tmp_path / "labels.txt",
        words=tmp_path,
        models=tmp_path,
        environments=tmp_path,
        folder=tmp_path,
    )


def fetching(*paths):
    """Return a program that fetches these paths of a.test, one after the other."""
    from peering.program import Program  # noqa: PLC0415 - found only now

    @dataclass(frozen=True)
    class Fetching(Program):
        def command(self, job, proxy):
            return [sys.executable, "-c", FETCH, *(f"http://a.test/{path}" for path in paths)]

        def version(self, job):
            return "1"

    return Fetching("fetching", "")


@pytest.mark.slow
def test_program_is_stopped_at_limit(job):
    from peering.measure import FULL, measure  # noqa: PLC0415 - found only now

    counts = measure(fetching("robots.txt", "", "2", "3", "wait"), job, 60, lambda tally: None)
    assert counts["ended"] == FULL
    assert (counts["requests"], counts["robots"], counts["found"]) == (3, 1, [2])
    assert counts["processor"] > 0
    assert counts["start_wall"] <= counts["wall"] < 60


@pytest.mark.slow
def test_program_may_end_by_itself(job):
    from peering.measure import ITSELF, measure  # noqa: PLC0415 - found only now

    counts = measure(fetching("2"), job, 60, lambda tally: None)
    assert (counts["requests"], counts["found"], counts["ended"]) == (1, [1], ITSELF)


@pytest.mark.slow
@pytest.mark.parametrize("paths", [(), ("fail",)])
def test_failed_program_is_an_error(job, paths):
    from peering.measure import CrawlError, measure  # noqa: PLC0415 - found only now

    with pytest.raises(CrawlError, match="fetching on leeks fails"):
        measure(fetching(*paths), job, 60, lambda tally: None)


@pytest.mark.slow
def test_processor_time_includes_ended_children():
    from peering.measure import processor_seconds  # noqa: PLC0415 - found only now

    burn = "import time\nwhile time.process_time() < 0.3: pass\n"
    run = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])\n"
    code = f"{run}print(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        process.stdout.readline()
        assert processor_seconds(process.pid) >= 0.3
        process.communicate(b"\n")
