import threading
from contextlib import closing

import pytest

pytest.importorskip("fsspec", reason="needs the extra cluster")
from tres_scrapy.cluster import snapshot as module
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.snapshot import (
    OvertakenError,
    ShardSnapshots,
    SnapshotFolder,
    begin_run,
)
from tres_scrapy.cluster.take_over import take_over
from tres_scrapy.run.run_file import NAME


@pytest.fixture
def folder(tmp_path):
    begin_run(f"file://{tmp_path}/store", {}, "")
    folder = SnapshotFolder(f"file://{tmp_path}/store/shard-0")
    folder.claim(1)
    return folder


@pytest.fixture
def journal(tmp_path):
    journal = ShardJournal.open(tmp_path / "shard-0", {}, "")
    yield journal
    journal.database.close()  # some tests have closed it


@pytest.fixture
def snapshots(tmp_path, folder, journal):
    return ShardSnapshots(tmp_path / "shard-0", folder, 60)


def begin(snapshots, journal, *, at_once=True):
    if snapshots.is_due(journal, at_once=at_once):
        snapshots.take(journal, [snapshots._folder / "pages.jsonl"])


def take(snapshots, journal):
    """Take a snapshot and wait for its end."""
    begin(snapshots, journal)
    snapshots.wait()


def receive(journal, sender, number):
    with journal.transaction() as cursor:
        journal.outbox.receive(cursor, sender, number)


def test_batches_are_durable_after_a_snapshot(snapshots, journal):
    receive(journal, 2, 5)
    assert snapshots.durable(2) == 0
    take(snapshots, journal)
    receive(journal, 2, 6)
    assert snapshots.durable(2) == 5
    assert not snapshots.holds(journal)
    take(snapshots, journal)
    assert snapshots.durable(2) == 6
    assert snapshots.holds(journal)


def test_snapshot_is_taken_when_it_is_due(snapshots, journal):
    idle = snapshots._thread
    begin(snapshots, journal, at_once=False)
    assert snapshots._thread is idle
    snapshots._due = 0.0
    begin(snapshots, journal, at_once=False)
    snapshots.wait()
    thread = snapshots._thread
    assert thread is not idle
    begin(snapshots, journal, at_once=False)  # the next one is due in a minute
    begin(snapshots, journal)  # this state is held
    assert snapshots._thread is thread
    assert snapshots.holds(journal)


def test_what_comes_during_a_snapshot_may_be_lost(snapshots, journal, monkeypatch):
    receive(journal, 2, 5)
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "_send", lambda *given: receive(journal, 2, 6))
        take(snapshots, journal)
    assert snapshots.durable(2) == 5
    assert not snapshots.holds(journal)


def test_snapshot_is_of_the_moment_it_begins(snapshots, journal, folder, tmp_path, monkeypatch):
    """The shard books pages and writes items while it is taken."""
    output, begun, done = tmp_path / "shard-0/pages.jsonl", threading.Event(), threading.Event()
    output.write_text("a\n")
    journal.note("name", "value")
    send = snapshots._send

    def wait_then_send(*given):
        begun.set()
        assert done.wait(20)
        send(*given)

    monkeypatch.setattr(snapshots, "_send", wait_then_send)
    begin(snapshots, journal)
    assert begun.wait(20)
    output.write_text("a\nb\n")
    journal.note("name", "later")
    done.set()
    snapshots.wait()
    assert not snapshots.holds(journal)
    take_over(tmp_path / "new", SnapshotFolder(folder.url), lambda least: least + 1)
    assert (tmp_path / "new/pages.jsonl").read_text() == "a\n"
    with closing(ShardJournal.open(tmp_path / "new", {})) as restored:
        assert restored.noted("name") == "value"


def test_last_snapshot_has_all_files(snapshots, journal, folder, tmp_path):
    names = {"pages.jsonl", "pages-domains.csv", "pages.warc.gz"}
    for name in names:
        (tmp_path / "shard-0" / name).write_text("abc")
    journal.close()
    snapshots.finish("today")
    snapshot = folder.latest()
    assert snapshot.run == "today"
    assert snapshot.sizes.keys() == {NAME, *names}
    assert not list((tmp_path / "shard-0").glob("*.part"))


def test_failed_snapshot_is_tried_again(snapshots, journal, folder, monkeypatch, caplog):
    receive(journal, 2, 5)
    with monkeypatch.context() as patch:
        patch.setattr(module, "AGAIN", 0.0)
        patch.setattr(folder, "write", lambda *arguments: 1 / 0)
        take(snapshots, journal)
    assert "No snapshot, it is tried again in" in caplog.text
    assert (snapshots.durable(2), snapshots.error) == (0, "division by zero")
    begin(snapshots, journal, at_once=False)  # it is due at once
    snapshots.wait()
    assert (snapshots.durable(2), snapshots.error) == (5, "")


def test_failed_snapshot_is_not_tried_again_at_once(snapshots, journal, folder, monkeypatch):
    receive(journal, 2, 5)
    monkeypatch.setattr(folder, "write", lambda *arguments: 1 / 0)
    take(snapshots, journal)
    failed = snapshots._thread
    begin(snapshots, journal)
    assert snapshots._thread is failed


def test_owner_that_was_overtaken_confirms_nothing(snapshots, journal, folder):
    receive(journal, 2, 5)
    SnapshotFolder(folder.url).claim(2)
    take(snapshots, journal)
    assert snapshots.is_overtaken
    assert snapshots.durable(2) == 0
    journal.close()
    with pytest.raises(OvertakenError):
        snapshots.finish("today")
