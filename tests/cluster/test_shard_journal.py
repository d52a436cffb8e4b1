import threading
from contextlib import closing

import pytest

from tres_scrapy.cluster.shard_journal import ShardJournal, back_up, held_in
from tres_scrapy.run.run_file import NAME

LARGE = "x" * 4096


@pytest.fixture
def journal(tmp_path):
    """Return a journal that is copied in several steps."""
    with closing(ShardJournal.open(tmp_path / "job", {}, "")) as journal:
        for number in range(200):
            journal.note(f"page {number}", LARGE)
        yield journal


def copied(journal, tmp_path, **more):
    """Copy a journal; return the copy."""
    folder = tmp_path / "copy"
    folder.mkdir(exist_ok=True)
    back_up(journal.database, folder / NAME, **more)
    return ShardJournal.open(folder, {})


def test_copy_holds_what_was_written_meanwhile(journal, tmp_path):
    counts = []

    def write():
        counts.append(len(counts))
        journal.note("page 0", f"{LARGE}{counts[-1]}")
        journal.note(f"new {counts[-1]}", LARGE)

    with closing(copied(journal, tmp_path, check=write)) as copy:
        assert len(counts) > 3
        last = len(copy.noted_after("new ")) - 1
        assert last >= counts[-2]
        assert copy.noted("page 0") == f"{LARGE}{last}"


def test_copy_ends_between_two_transactions(journal, tmp_path):
    begun = threading.Event()
    cursor = journal.database.cursor()
    cursor.execute("BEGIN")
    cursor.execute("INSERT INTO request VALUES (1, 'half')")
    copy = tmp_path / "copy"
    thread = threading.Thread(target=back_up, args=(journal.database, copy, begun.set))
    thread.start()
    assert begun.wait(20)
    cursor.execute("INSERT INTO request VALUES (2, 'whole')")
    cursor.execute("COMMIT")
    thread.join(20)
    copy.rename(tmp_path / NAME)
    with closing(ShardJournal.open(tmp_path, {})) as found:
        assert found.database.execute("SELECT count(*) FROM request").fetchone() == (2,)


def test_copy_can_be_broken_off(journal, tmp_path):
    def check():
        raise InterruptedError

    with pytest.raises(InterruptedError):
        back_up(journal.database, tmp_path / "copy", check)
    journal.note("name", "value")
    assert journal.noted("name") == "value"


def test_changes_tell_states_apart(journal, tmp_path):
    copied(journal, tmp_path).close()
    assert held_in(tmp_path / "copy" / NAME).changes == journal.changes
    journal.note("name", "value")
    assert held_in(tmp_path / "copy" / NAME).changes != journal.changes


def test_copy_says_how_long_the_output_was(journal, tmp_path):
    output, none = tmp_path / "pages.jsonl", tmp_path / "pages.csv"
    output.write_text("a\n")
    journal.note_lengths([output, none])
    journal.note("name", "value")
    output.write_text("a\nb\n")  # of a page that the next transaction books
    copied(journal, tmp_path).close()
    assert held_in(tmp_path / "copy" / NAME).lengths == {"pages.jsonl": 2, "pages.csv": 0}
    journal.note("name", "value")
    copied(journal, tmp_path).close()
    assert held_in(tmp_path / "copy" / NAME).lengths == {"pages.jsonl": 4, "pages.csv": 0}


def test_copy_says_what_was_received(journal, tmp_path):
    with journal.transaction() as cursor:
        journal.outbox.receive(cursor, 3, 17)
    copied(journal, tmp_path).close()
    held = held_in(tmp_path / "copy" / NAME)
    assert (held.received, held.steps) == ({3: 17}, 0)
