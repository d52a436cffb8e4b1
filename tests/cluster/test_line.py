import sqlite3
from contextlib import closing
from shutil import copytree, rmtree

import pytest

pytest.importorskip("fsspec", reason="needs the extra cluster")
from tres_scrapy.cluster.line import FILE, Line, gather, note_owner, take_over
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.shard_snapshot import ShardSnapshots
from tres_scrapy.cluster.snapshot_store import SnapshotFolder, SnapshotStore
from tres_scrapy.run.job_file import NAME
from tres_scrapy.url.message import TresError

STEP = "INSERT INTO step VALUES (NULL, ?, 1, 1, 'page', 0, 0, x'', 0, 0, NULL, NULL, 0)"


class Nodes:
    """Nodes with disks of their own, on which the owners of a shard follow each other."""

    def __init__(self, folder):
        self.folder, self.epoch = folder, 0
        self.store = SnapshotStore(f"file://{folder}/store")
        self.store.check({})

    def disk(self, node):
        return self.folder / node / "shard-0"

    def begin(self, node):
        """Let a new owner begin on a node."""
        self.epoch += 1
        snapshots = self.store.folder("shard-0")
        note_owner(self.disk(node), self.epoch, snapshots.highest())
        snapshots.claim(self.epoch)
        self.node, self.line = node, take_over(self.disk(node), snapshots, self.epoch)
        self.keeper = ShardSnapshots(self.disk(node), snapshots, self.line, self.epoch, 60)
        return self.line

    def crawl(self, *rows):
        """Book pages, and write each to the output."""
        with closing(ShardJournal.open(self.disk(self.node), {}, "")) as journal:
            with journal.transaction() as cursor:
                cursor.executemany(STEP, [(row,) for row in rows])
            with (self.disk(self.node) / "pages.jsonl").open("a") as output:
                output.writelines(f"{row}\n" for row in rows)

    def snapshot(self, run="run"):
        self.keeper.finish(run)

    def pages(self, node):
        with closing(sqlite3.connect(self.disk(node) / NAME)) as journal:
            return [row for (row,) in journal.execute("SELECT row FROM step")]


@pytest.fixture
def nodes(tmp_path):
    return Nodes(tmp_path)


def test_new_shard_begins_a_line(nodes):
    assert nodes.begin("a") == Line(1, ((1, 0),))
    nodes.crawl(1, 2)
    assert nodes.begin("a") == Line(1, ((1, 0),))  # no snapshot yet, but its journal
    assert nodes.begin("b") == Line(3, ((3, 0),))


def test_shard_moves_to_another_node(nodes):
    nodes.begin("a")
    nodes.crawl(1, 2)
    nodes.snapshot()
    nodes.crawl(3)
    assert nodes.begin("b") == Line(2, ((1, 0), (2, 2)))
    assert nodes.pages("b") == [1, 2]
    assert (nodes.disk("b") / "pages.jsonl").read_text() == "1\n2\n"


def test_own_disk_is_ahead_of_the_snapshot(nodes):
    line = nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.crawl(2)
    assert nodes.begin("a") == line
    assert nodes.pages("a") == [1, 2]


def test_old_disk_is_replaced(nodes):
    """The shard was on another node meanwhile."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.crawl(2)
    nodes.begin("b")
    nodes.crawl(7)
    nodes.snapshot()
    assert nodes.begin("a") == Line(3, ((1, 0), (2, 1), (3, 2)))
    assert nodes.pages("a") == [1, 7]


def test_old_disk_is_replaced_if_the_shard_left_no_snapshot_elsewhere(nodes):
    """There it may have sent links, under numbers that the old disk would use again."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.crawl(2)
    nodes.begin("b")
    nodes.crawl(7)
    assert nodes.begin("a") == Line(3, ((1, 0), (3, 1)))
    assert nodes.pages("a") == [1]


def test_old_disk_without_any_snapshot_is_emptied(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.begin("b")
    assert nodes.begin("a") == Line(3, ((3, 0),))
    assert not (nodes.disk("a") / NAME).exists()


def test_folder_without_its_line_has_no_journal(nodes, monkeypatch):
    """A kill while the folder is removed must not leave a journal that seems another crawl's."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.begin("b")
    with monkeypatch.context() as patch:
        patch.setattr("tres_scrapy.cluster.line.shutil.rmtree", lambda *_, **__: None)
        with pytest.raises(OSError, match="not empty"):
            nodes.begin("a")
    assert not (nodes.disk("a") / NAME).exists()
    assert nodes.begin("a").number == 4


def test_damaged_journal_is_not_current(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    (nodes.disk("a") / NAME).write_bytes(b"no journal" * 100)
    assert gather(nodes.disk("a"), nodes.store.folder("shard-0"), "run")
    assert (nodes.disk("a") / "pages.jsonl").read_text() == "1\n"


def test_disk_that_lost_rows_is_replaced(nodes):
    """It was set back to an older state, for example from a backup of the machine."""
    nodes.begin("a")
    nodes.crawl(1)
    copytree(nodes.disk("a"), nodes.folder / "old")
    nodes.crawl(2)
    nodes.snapshot()
    rmtree(nodes.disk("a"))
    copytree(nodes.folder / "old", nodes.disk("a"))
    assert nodes.begin("a").number == 2
    assert nodes.pages("a") == [1, 2]


def test_journal_without_snapshots_gets_them(nodes):
    ShardJournal.open(nodes.disk("a"), {}, "").close()
    assert nodes.begin("a") == Line(1)
    nodes.crawl(1)
    nodes.snapshot()
    assert nodes.begin("b") == Line(2, ((2, 1),))


@pytest.mark.parametrize("call", ["claim", "latest"])
@pytest.mark.parametrize("with_line", [False, True])
def test_owner_that_fails_leaves_its_disk_to_the_next(nodes, monkeypatch, call, with_line):
    """The storage fails when it begins."""
    if with_line:
        nodes.begin("a")
        nodes.crawl(1)
        nodes.snapshot()
        nodes.crawl(2)
    else:
        ShardJournal.open(nodes.disk("a"), {}, "").close()
        nodes.node = "a"
        nodes.crawl(1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(SnapshotFolder, call, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            nodes.begin("a")
    nodes.begin("a")
    assert nodes.pages("a") == [1, 2]


def test_journal_without_a_line_is_never_removed(nodes):
    """The shard began on another node, which could not see this journal."""
    ShardJournal.open(nodes.disk("a"), {}, "").close()
    nodes.begin("b")
    with pytest.raises(TresError, match="holds another crawl than the snapshots"):
        nodes.begin("a")
    assert (nodes.disk("a") / NAME).exists()


def test_journal_of_another_crawl_is_kept(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    ShardJournal.open(nodes.disk("b"), {}, "").close()
    with pytest.raises(TresError, match="holds another crawl than the snapshots"):
        nodes.begin("b")
    assert (nodes.disk("b") / NAME).exists()


def test_interrupted_restore_begins_again(nodes, monkeypatch):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(Line, "write", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            nodes.begin("b")
    assert not nodes.disk("b").exists()
    nodes.begin("b")
    assert nodes.pages("b") == [1]


def test_files_are_gathered_from_another_node(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot("today")
    here, snapshots = nodes.disk("driver"), nodes.store.folder("shard-0")
    assert not gather(here, snapshots, "tomorrow")
    assert gather(here, snapshots, "today")
    assert [path.name for path in here.iterdir()] == ["pages.jsonl"]
    nodes.begin("driver")  # the shard moves there
    nodes.crawl(2)
    assert nodes.pages("driver") == [1, 2]
    assert (here / "pages.jsonl").read_text() == "1\n2\n"


def test_own_files_need_not_be_gathered(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    assert gather(nodes.disk("a"), nodes.store.folder("shard-0"), "run")
    assert {NAME, FILE} <= {path.name for path in nodes.disk("a").iterdir()}
