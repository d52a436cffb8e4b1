"""The records of the shards of a crawl as one record."""

import sqlite3
from dataclasses import replace
from itertools import pairwise
from shutil import copytree

import pytest
from sharded_run import SEED, ShardedRun

from tres_scrapy.cluster.joining import join_shards
from tres_scrapy.cluster.record_join import JoinedRecord, read_part
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import find_record, records_below
from tres_scrapy.run.run_file import RecordError


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return ShardedRun(tmp_path_factory.mktemp("job")).run(40).close()


@pytest.fixture
def joined(run):
    with Record(join_shards(run.folder, at_once=True)) as record:
        yield record


def parts_of(run, joined, *shards, most=1000):
    after = joined.positions()
    return {shard: read_part(run.path(shard), after[shard], most) for shard in shards}


def test_all_pages_are_joined_by_time(run, joined):
    pages = joined.last(10_000)[::-1]
    assert [(page.time, page.url) for page in pages] == sorted(run.order)
    assert [page.step for page in pages] == list(range(1, len(run.order) + 1))
    assert len({page.row for page in pages}) == len(pages)
    assert all(joined.remark(page) == "refused by languages: it is in " for page in pages)
    assert all(joined.scores(page)["sports"] == page.row % 3 / 10 for page in pages)


def test_page_is_that_of_its_shard(run, joined):
    with Record(run.path(1)) as own:
        for page in own.last(1000)[::-1]:
            found = joined.find(page.url)
            same = {"step": 0, "row": 0, "parent": 0, "leaf": None, "splits": None}
            assert replace(found, **same) == replace(page, **same)
            assert found.row % run.shards == 1
            own_rivals = [rival.url for rival in own.rivals(page.step)]
            assert [rival.url for rival in joined.rivals(found.step)] == own_rivals


def test_path_crosses_shards(run, joined):
    crossing = 0
    for page in joined.last(10_000)[::-1]:
        trail = joined.trail(page)
        assert [hop.url for hop in trail] == run.trail(page.url)
        assert trail[0].url == SEED
        crossing += any(a.row % run.shards != b.row % run.shards for a, b in pairwise(trail))
    assert crossing > len(run.order) / 2


def test_curve_is_the_sum(run, joined):
    curve, crawls = joined.curve(), run.crawls
    last = curve[-1]
    assert (last.pages, last.relevant) == (sum(c.pages for c in crawls), run.relevant)
    assert last.domains == sum(c.store.ledger.relevant_domains for c in crawls)
    assert last.frontier == sum(c.store.pending for c in crawls)
    for before, now in pairwise(curve):
        assert before.step < now.step
        assert before.time <= now.time
        assert before.pages <= now.pages


def test_health_is_the_sum(run, joined):
    last = joined.health()[-1]
    assert last.memory == 1000  # the others follow
    run_health = ShardedRun(run.folder / "more").run(3)
    run_health.flush()
    run_health.run(1)
    run_health.flush()
    with Record(join_shards(run_health.folder, at_once=True)) as record:
        assert record.health()[-1].answers["200"] == 4 + 3 + 3
        assert record.health()[-1].memory == 3000


def test_meta_is_of_the_whole_crawl(run, joined):
    meta = joined.meta()
    assert (meta["topic"], meta["reason"], meta["started"]) == ("food", "page_limit", "20260")
    assert meta["gone"] == "h0.test; h1.test; h2.test"
    assert meta["output"] == str(run.folder / "food.jsonl")
    assert joined.shards() == 3
    assert joined.settings() == {"A": "1", "JOBDIR": str(run.folder), "TRES_SHARDS": "3"}


def test_report_and_explanation_name_shards(run, joined):
    report = render(joined)
    assert "It ran in 3 shards" in report
    page = joined.last(1)[0]
    shard = page.row % 3
    said = str(FetchExplanation(joined, page.url))
    assert f"Shard: {shard} of 3. For its leaf: tres explain {run.folder}/shard-{shard}" in said
    assert "\nPath:\n" in said
    assert "\n\n\n" not in said


def test_running_crawl_is_joined_in_parts(tmp_path):
    run = ShardedRun(tmp_path).run(10)
    run.flush()
    with JoinedRecord(tmp_path / "tres.run", 3, tmp_path / "food.jsonl") as joined:
        assert joined.add(parts_of(run, joined, 0, 1, 2, most=4), 1.0)
        with Record(joined.path) as record:
            assert len(record.last(100)) <= 12
            assert "reason" not in record.meta()
        run.run(10)
        run.flush(0, 1)
        for _ in range(10):
            assert joined.add(parts_of(run, joined, 0, 1), 2.0)
        run.close()
    with Record(join_shards(tmp_path, at_once=True)) as record:
        found = [(page.time, page.url) for page in record.last(1000)[::-1]]
        assert found == sorted(run.order)  # those of shard 2 came last
        assert record.meta()["reason"] == "page_limit"
        for page in record.last(5):
            assert [rival.url for rival in record.rivals(page.step)]


def test_resumed_crawl_has_not_ended(tmp_path):
    run = ShardedRun(tmp_path).run(5).close()
    join_shards(tmp_path, at_once=True)
    connection = sqlite3.connect(run.path(1))
    with connection:
        connection.execute("DELETE FROM meta WHERE name = 'reason'")
    connection.close()
    with Record(join_shards(tmp_path, at_once=True)) as record:
        assert not {"reason", "ended", "gone"} & record.meta().keys()


def test_clocks_may_differ(tmp_path):
    run = ShardedRun(tmp_path, skew=3600.0).run(20).close()
    with Record(join_shards(tmp_path, at_once=True)) as record:
        pages = record.last(1000)[::-1]
        assert len(pages) == len(run.order)
        assert all(record.trail(page)[0].url == SEED for page in pages)


def test_shard_that_began_again_is_read_again(tmp_path):
    ShardedRun(tmp_path).run(20).close()
    join_shards(tmp_path, at_once=True)
    for path in tmp_path.glob("shard-*/tres.run"):
        path.unlink()
    run = ShardedRun(tmp_path).run(6).close()
    with Record(join_shards(tmp_path, at_once=True)) as record:
        found = [page.url for page in record.last(1000)]
        assert found[::-1] == [url for _, url in sorted(run.order)]


def test_two_processes_add_nothing_twice(tmp_path):
    run = ShardedRun(tmp_path).run(8)
    run.flush()
    with (
        JoinedRecord(tmp_path / "tres.run", 3, tmp_path) as one,
        JoinedRecord(tmp_path / "tres.run", 3, tmp_path) as other,
    ):
        parts = parts_of(run, one, 0, 1, 2)
        assert other.add(parts_of(run, other, 0, 1, 2), 1.0)
        assert not one.add(parts, 2.0)
        assert one.add(parts_of(run, one, 0, 1, 2), 3.0)
    with Record(tmp_path / "tres.run") as record:
        assert [page.step for page in record.last(1000)[::-1]] == list(range(1, len(run.order) + 1))


def test_shard_without_meta_is_left_out(tmp_path):
    run = ShardedRun(tmp_path).run(2)
    run.flush()
    with JoinedRecord(tmp_path / "tres.run", 3, tmp_path) as joined:
        parts = parts_of(run, joined, 0, 1, 2)
        parts[1] = parts[1]._replace(meta={})
        assert joined.add(parts, 1.0)
        assert joined.positions()[1].step == 0


def test_record_is_found_by_folder_and_output(tmp_path, monkeypatch):
    job = tmp_path / "jobs" / "try"
    ShardedRun(job).run(2).close()
    assert find_record(job) == job / "tres.run"
    (job / "food.jsonl").touch()
    assert find_record(job / "food.jsonl") == job / "tres.run"
    snapshot = job / "shard-0" / "snapshot.part"  # while one is taken
    copytree(job / "shard-1", snapshot)
    for folder in (job, job.parent, tmp_path):
        monkeypatch.chdir(folder)
        assert [path.resolve() for path in records_below()] == [job / "tres.run"]


def test_fresh_record_is_left_alone(tmp_path):
    run = ShardedRun(tmp_path).run(4)
    run.flush()
    path = join_shards(tmp_path)
    run.run(4)
    run.flush()
    assert join_shards(tmp_path) == path
    with Record(path) as record:
        assert len(record.last(1000)) < len(run.order)


def test_record_in_a_closed_folder_is_read(tmp_path, monkeypatch):
    ShardedRun(tmp_path).run(4).close()
    path = join_shards(tmp_path)

    def refuse(*arguments):
        raise RecordError("cannot be written")

    monkeypatch.setattr("tres_scrapy.cluster.joining.JoinedRecord", refuse)
    assert find_record(tmp_path) == path
    path.unlink()
    with pytest.raises(RecordError, match="cannot be written"):
        find_record(tmp_path)
