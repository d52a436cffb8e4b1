import threading
from contextlib import closing

import pytest

pytest.importorskip("fsspec", reason="needs the extra cluster")
from tres_scrapy.cluster import shard_snapshot
from tres_scrapy.cluster.line import RUN, Line, take_over
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.shard_snapshot import ShardSnapshots
from tres_scrapy.cluster.snapshot_store import SnapshotError, SnapshotStore
from tres_scrapy.run.run_file import NAME, open_to_write


@pytest.fixture
def folder(tmp_path):
    store = SnapshotStore(f"file://{tmp_path}/store")
    store.check({})
    folder = store.folder("shard-0")
    folder.claim(1)
    return folder


@pytest.fixture
def journal(tmp_path):
    journal = ShardJournal.open(tmp_path / "shard-0", {}, "")
    yield journal
    journal.database.close()  # some tests have closed it


@pytest.fixture
def snapshots(tmp_path, folder, journal):
    snapshots = ShardSnapshots(tmp_path / "shard-0", folder, Line(1, ((1, 0),)), 1, 60)
    journal.note_lengths(snapshots.outputs)
    return snapshots


def take(snapshots, journal):
    """Take a snapshot and wait for its end."""
    snapshots.take_if_due(journal, at_once=True)
    snapshots._thread.join(20)


def receive(journal, sender, number):
    with journal.transaction() as cursor:
        journal.outbox.receive(cursor, sender, number)


def test_batches_are_durable_after_a_snapshot(snapshots, journal):
    receive(journal, 2, 5)
    assert snapshots.durable(2) == 0
    take(snapshots, journal)
    receive(journal, 2, 6)
    assert snapshots.durable(2) == 5
    assert not snapshots.holds(journal.changes)
    take(snapshots, journal)
    assert snapshots.durable(2) == 6
    assert snapshots.holds(journal.changes)


def test_snapshot_is_taken_when_it_is_due(snapshots, journal):
    snapshots.take_if_due(journal)
    assert snapshots._thread is None
    snapshots._due = 0.0
    snapshots.take_if_due(journal)
    snapshots._thread.join(20)
    thread = snapshots._thread
    snapshots.take_if_due(journal)  # the next one is due in a minute
    snapshots.take_if_due(journal, at_once=True)  # this state is held
    assert snapshots._thread is thread
    assert snapshots.holds(journal.changes)


def test_restored_shard_has_the_output_of_its_journal(snapshots, journal, folder, tmp_path):
    output = tmp_path / "shard-0/pages.jsonl"
    output.write_text("a\n")
    open_to_write(output.with_name(NAME)).close()
    journal.note("name", "value")
    output.write_text("a\nb\n")  # its page is not booked yet
    take(snapshots, journal)
    folder.claim(2)
    assert take_over(tmp_path / "new", folder, 2) == Line(2, ((1, 0), (2, 0)))
    assert (tmp_path / "new/pages.jsonl").read_text() == "a\n"
    open_to_write(tmp_path / "new" / NAME).close()
    with closing(ShardJournal.open(tmp_path / "new", {})) as restored:
        assert restored.noted("name") == "value"


def test_last_snapshot_has_all_files(snapshots, journal, folder, tmp_path):
    names = {"pages.jsonl", "pages-domains.csv", "pages.warc.gz"}
    for name in names:
        (tmp_path / "shard-0" / name).write_text("abc")
    journal.close()
    snapshots.finish("today")
    manifest = folder.latest()
    assert manifest.facts[RUN] == "today"
    assert manifest.files.keys() == {NAME, *names}
    assert not (tmp_path / "shard-0/snapshot.part").exists()


def test_failed_snapshot_is_tried_again(snapshots, journal, folder, monkeypatch, caplog):
    receive(journal, 2, 5)
    with monkeypatch.context() as patch:
        patch.setattr(shard_snapshot, "AGAIN", 0.0)
        patch.setattr(folder, "write", lambda *arguments: 1 / 0)
        take(snapshots, journal)
    assert "No snapshot, it is tried again in" in caplog.text
    assert (snapshots.durable(2), snapshots.error) == (0, "division by zero")
    snapshots.take_if_due(journal)  # it is due at once
    snapshots._thread.join(20)
    assert (snapshots.durable(2), snapshots.error) == (5, "")


def test_failed_snapshot_is_not_tried_again_at_once(snapshots, journal, folder, monkeypatch):
    receive(journal, 2, 5)
    monkeypatch.setattr(folder, "write", lambda *arguments: 1 / 0)
    take(snapshots, journal)
    failed = snapshots._thread
    snapshots.take_if_due(journal, at_once=True)
    assert snapshots._thread is failed


def test_owner_that_was_overtaken_confirms_nothing(snapshots, journal, tmp_path):
    receive(journal, 2, 5)
    SnapshotStore(f"file://{tmp_path}/store").folder("shard-0").claim(2)
    take(snapshots, journal)
    assert snapshots.is_overtaken
    assert snapshots.durable(2) == 0
    journal.close()
    snapshots.finish("today")  # it does nothing


def test_journal_can_be_closed_while_blocks_are_sent(snapshots, journal, folder, monkeypatch):
    sending, go_on = threading.Event(), threading.Event()

    def write(*arguments):
        sending.set()
        assert go_on.wait(20)

    with monkeypatch.context() as patch:
        patch.setattr(folder, "write", write)
        snapshots.take_if_due(journal, at_once=True)
        assert sending.wait(20)
        snapshots.stop()
        journal.close()
        snapshots.take_if_due(journal, at_once=True)  # no other begins
        go_on.set()
        snapshots._thread.join(20)
    snapshots.finish("today")
    assert folder.latest() is not None


def test_copy_ends_when_the_crawl_does(snapshots, journal, caplog, monkeypatch):
    begun, go_on, ended = threading.Event(), threading.Event(), []

    def back_up(source, target, check):
        begun.set()
        assert go_on.wait(20)
        try:
            check()
        except InterruptedError as error:
            ended.append(error)
            raise

    monkeypatch.setattr(shard_snapshot, "back_up", back_up)
    snapshots.take_if_due(journal, at_once=True)
    assert begun.wait(20)
    threading.Timer(0.05, go_on.set).start()
    snapshots.stop()
    assert len(ended) == 1  # it waits for that
    snapshots._thread.join(20)
    assert not caplog.text


def test_last_snapshot_must_succeed(snapshots, journal, folder, monkeypatch):
    def fail(*arguments):
        raise SnapshotError("no storage")

    monkeypatch.setattr(shard_snapshot, "LAST", -1.0)
    monkeypatch.setattr(folder, "write", fail)
    journal.close()
    with pytest.raises(SnapshotError, match="no storage"):
        snapshots.finish("today")
