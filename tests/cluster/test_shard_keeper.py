import threading
from contextlib import closing

import pytest

pytest.importorskip("fsspec", reason="needs the extra cluster")
from tres_scrapy.cluster import shard_keeper
from tres_scrapy.cluster.line import RUN, Line, take_over
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.shard_keeper import ShardKeeper
from tres_scrapy.cluster.snapshot_store import SnapshotError, SnapshotStore
from tres_scrapy.report.record_file import IN_JOB, open_to_write
from tres_scrapy.run.job_file import NAME


@pytest.fixture
def snapshots(tmp_path):
    store = SnapshotStore(f"file://{tmp_path}/store")
    store.check({})
    snapshots = store.folder("shard-0")
    snapshots.claim(1)
    return snapshots


@pytest.fixture
def journal(tmp_path):
    journal = ShardJournal.open(tmp_path / "shard-0", {}, "")
    yield journal
    journal.database.close()  # some tests have closed it


@pytest.fixture
def keeper(tmp_path, snapshots, journal):
    keeper = ShardKeeper(tmp_path / "shard-0", snapshots, Line(1, ((1, 0),)), 1, 60)
    journal.note_lengths(keeper.outputs)
    return keeper


def take(keeper, journal):
    """Take a snapshot and wait for its end."""
    keeper.look(journal, at_once=True)
    keeper._thread.join(20)


def receive(journal, sender, number):
    with journal.transaction() as cursor:
        journal.outbox.receive(cursor, sender, number)


def test_parcels_are_durable_after_a_snapshot(keeper, journal):
    receive(journal, 2, 5)
    assert keeper.durable(2) == 0
    take(keeper, journal)
    receive(journal, 2, 6)
    assert keeper.durable(2) == 5
    assert not keeper.holds(journal.changes)
    take(keeper, journal)
    assert keeper.durable(2) == 6
    assert keeper.holds(journal.changes)


def test_snapshot_is_taken_when_it_is_due(keeper, journal):
    keeper.look(journal)
    assert keeper._thread is None
    keeper._due = 0.0
    keeper.look(journal)
    keeper._thread.join(20)
    thread = keeper._thread
    keeper.look(journal)  # the next one is due in a minute
    keeper.look(journal, at_once=True)  # this state is held
    assert keeper._thread is thread
    assert keeper.holds(journal.changes)


def test_restored_shard_has_the_output_of_its_journal(keeper, journal, snapshots, tmp_path):
    output = tmp_path / "shard-0/pages.jsonl"
    output.write_text("a\n")
    open_to_write(output.with_name(IN_JOB)).close()
    journal.note("name", "value")
    output.write_text("a\nb\n")  # its page is not booked yet
    take(keeper, journal)
    snapshots.claim(2)
    assert take_over(tmp_path / "new", snapshots, 2) == Line(2, ((1, 0), (2, 0)))
    assert (tmp_path / "new/pages.jsonl").read_text() == "a\n"
    open_to_write(tmp_path / "new" / IN_JOB).close()
    with closing(ShardJournal.open(tmp_path / "new", {})) as restored:
        assert restored.noted("name") == "value"


def test_last_snapshot_has_all_files(keeper, journal, snapshots, tmp_path):
    names = {"pages.jsonl", "pages-domains.csv", "pages.warc.gz"}
    for name in names:
        (tmp_path / "shard-0" / name).write_text("abc")
    journal.close()
    keeper.finish("today")
    manifest = snapshots.latest()
    assert manifest.facts[RUN] == "today"
    assert manifest.files.keys() == {NAME, *names}
    assert not (tmp_path / "shard-0/snapshot.part").exists()


def test_failed_snapshot_is_tried_again(keeper, journal, snapshots, monkeypatch, caplog):
    receive(journal, 2, 5)
    with monkeypatch.context() as patch:
        patch.setattr(shard_keeper, "AGAIN", 0.0)
        patch.setattr(snapshots, "write", lambda *arguments: 1 / 0)
        take(keeper, journal)
    assert "No snapshot, it is tried again in" in caplog.text
    assert (keeper.durable(2), keeper.error) == (0, "division by zero")
    keeper.look(journal)  # it is due at once
    keeper._thread.join(20)
    assert (keeper.durable(2), keeper.error) == (5, "")


def test_failed_snapshot_is_not_tried_again_at_once(keeper, journal, snapshots, monkeypatch):
    receive(journal, 2, 5)
    monkeypatch.setattr(snapshots, "write", lambda *arguments: 1 / 0)
    take(keeper, journal)
    failed = keeper._thread
    keeper.look(journal, at_once=True)
    assert keeper._thread is failed


def test_owner_that_was_overtaken_confirms_nothing(keeper, journal, tmp_path):
    receive(journal, 2, 5)
    SnapshotStore(f"file://{tmp_path}/store").folder("shard-0").claim(2)
    take(keeper, journal)
    assert keeper.is_overtaken
    assert keeper.durable(2) == 0
    journal.close()
    keeper.finish("today")  # it does nothing


def test_journal_can_be_closed_while_blocks_are_sent(keeper, journal, snapshots, monkeypatch):
    sending, go_on = threading.Event(), threading.Event()

    def write(*arguments):
        sending.set()
        assert go_on.wait(20)

    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "write", write)
        keeper.look(journal, at_once=True)
        assert sending.wait(20)
        keeper.stop()
        journal.close()
        keeper.look(journal, at_once=True)  # no other begins
        go_on.set()
        keeper._thread.join(20)
    keeper.finish("today")
    assert snapshots.latest() is not None


def test_copy_ends_when_the_crawl_does(keeper, journal, caplog, monkeypatch):
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def back_up(source, target, check):
        begun.set()
        assert go_on.wait(20)
        try:
            check()
        except InterruptedError as error:
            ended.append(error)
            raise

    monkeypatch.setattr(shard_keeper, "back_up", back_up)
    keeper.look(journal, at_once=True)
    assert begun.wait(20)
    threading.Timer(0.05, go_on.set).start()
    keeper.stop()
    assert len(ended) == 1  # it waits for that
    keeper._thread.join(20)
    assert not caplog.text


def test_last_snapshot_must_succeed(keeper, journal, snapshots, monkeypatch):
    def fail(*arguments):
        raise SnapshotError("no storage")

    monkeypatch.setattr(shard_keeper, "LAST", -1.0)
    monkeypatch.setattr(snapshots, "write", fail)
    journal.close()
    with pytest.raises(SnapshotError, match="no storage"):
        keeper.finish("today")
