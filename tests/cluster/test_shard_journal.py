import threading
from contextlib import closing

import pytest

from tres_scrapy.cluster import shard_snapshot
from tres_scrapy.cluster.shard_journal import ShardJournal, lengths_in
from tres_scrapy.cluster.shard_snapshot import back_up
from tres_scrapy.run.run_file import NAME

LARGE = "x" * 4096


@pytest.fixture
def journal(tmp_path):
    """Return a journal that is copied in several steps."""
    with closing(ShardJournal.open(tmp_path / "job", {}, "")) as journal:
        for number in range(200):
            journal.note(f"page {number}", LARGE)
        yield journal


def copied(journal, tmp_path):
    """Copy a journal; return the copy."""
    folder = tmp_path / "copy"
    folder.mkdir(exist_ok=True)
    back_up(journal.database, folder / NAME)
    return ShardJournal.open(folder, {})


def test_copy_holds_what_was_written_meanwhile(journal, tmp_path, monkeypatch):
    counts = []

    def write(seconds):
        counts.append(len(counts))
        journal.note("page 0", f"{LARGE}{counts[-1]}")
        journal.note(f"new {counts[-1]}", LARGE)

    monkeypatch.setattr(shard_snapshot, "sleep", write)  # between two steps
    with closing(copied(journal, tmp_path)) as copy:
        assert len(counts) > 3
        last = len(copy.noted_after("new ")) - 1
        assert last >= counts[-2]
        assert copy.noted("page 0") == f"{LARGE}{last}"


def test_copy_ends_between_two_transactions(journal, tmp_path, monkeypatch):
    begun = threading.Event()
    monkeypatch.setattr(shard_snapshot, "sleep", lambda seconds: begun.set())
    cursor = journal.database.cursor()
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO request VALUES (1, 'half')")
    copy = tmp_path / "copy"
    thread = threading.Thread(target=back_up, args=(journal.database, copy))
    thread.start()
    assert begun.wait(20)
    cursor.execute("INSERT INTO request VALUES (2, 'whole')")
    cursor.execute("COMMIT")
    thread.join(20)
    copy.rename(tmp_path / NAME)
    with closing(ShardJournal.open(tmp_path, {})) as found:
        assert found.database.execute("SELECT count(*) FROM request").fetchone() == (2,)


def test_copy_says_how_long_the_output_was(journal, tmp_path):
    output, none = tmp_path / "pages.jsonl", tmp_path / "pages.csv"
    output.write_text("a\n")
    journal.note_lengths([output, none])
    journal.note("name", "value")
    output.write_text("a\nb\n")  # of a page that the next transaction books
    copied(journal, tmp_path).close()
    assert lengths_in(tmp_path / "copy" / NAME) == {"pages.jsonl": 2, "pages.csv": 0}
    journal.note("name", "value")
    copied(journal, tmp_path).close()
    assert lengths_in(tmp_path / "copy" / NAME) == {"pages.jsonl": 4, "pages.csv": 0}
