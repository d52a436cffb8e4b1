import logging

from sharded_run import ShardedRun

from tres_scrapy.cluster.joining import Joining
from tres_scrapy.cluster.record_join import read_part
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import RecordError


def parts_of(run):
    return lambda after: {shard: read_part(run.path(shard), at) for shard, at in after.items()}


def test_record_grows_with_the_crawl(tmp_path):
    run = ShardedRun(tmp_path)
    joining = Joining(tmp_path, 3, tmp_path / "food.jsonl", parts_of(run), 0.0)
    for _ in range(3):
        run.run(3)
        run.flush()
        joining._due = 0.0
        joining.look()
        with Record(joining.path) as record:
            assert len(record.last(1000)[::-1]) == len(run.order)
    joining.close()


def test_shards_are_asked_seldom(tmp_path):
    asked = []

    def parts(after):
        asked.append(after)
        return {}

    joining = Joining(tmp_path, 3, tmp_path, parts, 60.0)
    for _ in range(5):
        joining.look()
    assert len(asked) == 1
    joining.close()


def test_fault_of_a_record_ends_no_crawl(tmp_path, caplog):
    def parts(after):
        raise RecordError("the record of shard 1 is damaged")

    joining = Joining(tmp_path, 3, tmp_path, parts, 0.0)
    with caplog.at_level(logging.ERROR):
        joining.look()
        joining.look()
    assert [record.message for record in caplog.records] == [
        "the record of shard 1 is damaged: the crawl goes on without a record of all shards"
    ]


def test_folder_that_refuses_files_ends_no_crawl(tmp_path, caplog):
    (tmp_path / "tres.run").mkdir()
    Joining(tmp_path, 3, tmp_path, dict, 0.0).look()
    assert "goes on without a record" in caplog.text
