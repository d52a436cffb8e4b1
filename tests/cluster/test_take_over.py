"""Owners of a shard that follow each other on nodes with disks of their own."""

import sqlite3
from contextlib import closing

import pytest

pytest.importorskip("fsspec", reason="needs the extra cluster")
from fsspec.implementations.local import LocalFileSystem

from tres_scrapy.cluster import take_over as module
from tres_scrapy.cluster.shard_journal import ShardJournal
from tres_scrapy.cluster.snapshot import (
    EPOCHS,
    OvertakenError,
    ShardSnapshots,
    SnapshotFolder,
    begin_run,
)
from tres_scrapy.cluster.take_over import epochs_of, gather, take_over
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError


class Nodes:
    """Nodes with disks of their own, on which the owners of a shard follow each other."""

    def __init__(self, folder):
        self.folder, self.epoch = folder, 0
        self.url = f"file://{folder}/store"
        begin_run(self.url, {}, "")

    @property
    def snapshots(self):
        return SnapshotFolder(f"{self.url}/shard-0")

    def disk(self, node):
        return self.folder / node / "shard-0"

    def next_epoch(self, least):
        self.epoch = max(self.epoch, least) + 1
        return self.epoch

    def begin(self, node, meanwhile=lambda: None):
        """Let a new owner begin on a node; something may happen before it leaves its claim."""
        snapshots = self.snapshots

        def begin(least):
            epoch = self.next_epoch(least)
            meanwhile()
            return epoch

        take_over(self.disk(node), snapshots, begin)
        self.node, self.keeper = node, ShardSnapshots(self.disk(node), snapshots, 60)

    def crawl(self, *rows):
        """Book pages, and write each to the output."""
        with closing(ShardJournal.open(self.disk(self.node), {}, "")) as journal:
            for row in rows:
                journal.note(f"page {row}", "1")
        with (self.disk(self.node) / "pages.jsonl").open("a") as output:
            output.writelines(f"{row}\n" for row in rows)

    def snapshot(self, run="run"):
        self.keeper.finish(run)

    def pages(self, node):
        with closing(sqlite3.connect(self.disk(node) / NAME)) as journal:
            found = journal.execute("SELECT name FROM meta WHERE name LIKE 'page %' ORDER BY name")
            return [int(name.removeprefix("page ")) for (name,) in found]


@pytest.fixture
def nodes(tmp_path):
    return Nodes(tmp_path)


def test_new_shard_has_a_journal_from_its_first_owner(nodes):
    nodes.begin("a")
    assert epochs_of(nodes.disk("a")) == set()
    nodes.crawl(1, 2)
    nodes.begin("a")  # no snapshot yet, but its journal
    assert nodes.pages("a") == [1, 2]
    assert epochs_of(nodes.disk("a")) == {2}
    nodes.begin("b")
    assert not (nodes.disk("b") / NAME).exists()


def test_shard_moves_to_another_node(nodes):
    nodes.begin("a")
    nodes.crawl(1, 2)
    nodes.snapshot()
    nodes.crawl(3)
    nodes.begin("b")
    assert nodes.pages("b") == [1, 2]
    assert (nodes.disk("b") / "pages.jsonl").read_text() == "1\n2\n"


def test_own_disk_is_ahead_of_the_snapshot(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.crawl(2)
    nodes.begin("a")
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
    nodes.begin("a")
    assert nodes.pages("a") == [1, 7]
    nodes.crawl(8)
    nodes.begin("a")  # the disk counts again
    assert nodes.pages("a") == [1, 7, 8]


def test_old_disk_is_replaced_if_the_shard_left_no_snapshot_elsewhere(nodes):
    """There it may have sent links, under higher numbers than those on the old disk."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.crawl(2)
    nodes.begin("b")
    nodes.crawl(7)
    nodes.begin("a")
    assert nodes.pages("a") == [1]


def test_old_disk_without_any_snapshot_is_emptied(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.begin("b")
    nodes.begin("a")
    assert not (nodes.disk("a") / NAME).exists()


def test_owner_that_begins_meanwhile_is_noticed(nodes):
    """It began first, and leaves its claim after this one has looked for others."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.crawl(2)
    nodes.next_epoch(0)
    nodes.begin("a", meanwhile=lambda: nodes.snapshots.claim(2))
    assert nodes.pages("a") == [1]


def test_owner_that_is_late_stops(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    with pytest.raises(OvertakenError) as caught:
        nodes.begin("a", meanwhile=lambda: nodes.begin("b"))
    assert caught.value.epoch == 2
    nodes.begin("a")  # what it had was overtaken, too
    assert not (nodes.disk("a") / NAME).exists()


def test_folder_without_its_epochs_has_no_journal(nodes, monkeypatch):
    """A kill while the folder is removed must not leave a journal that seems another crawl's."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.begin("b")
    with monkeypatch.context() as patch:
        patch.setattr(module.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(OSError, match="not empty"):
            nodes.begin("a")
    assert not (nodes.disk("a") / NAME).exists()
    nodes.begin("a")
    assert nodes.pages("a") == [1]


def test_journal_without_snapshots_gets_them(nodes):
    ShardJournal.open(nodes.disk("a"), {}, "").close()
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    nodes.begin("b")
    nodes.crawl(2)
    nodes.snapshot()
    nodes.begin("a")
    assert nodes.pages("a") == [1, 2]


@pytest.mark.parametrize(
    "call",
    [(SnapshotFolder, "claim"), (SnapshotFolder, "_names"), (LocalFileSystem, "pipe_file")],
)
@pytest.mark.parametrize("has_snapshots", [False, True])
def test_owner_that_fails_leaves_its_disk_to_the_next(nodes, monkeypatch, call, has_snapshots):
    """The storage fails when it begins."""
    if has_snapshots:
        nodes.begin("a")
        nodes.crawl(1)
        nodes.snapshot()
        nodes.crawl(2)
    else:
        ShardJournal.open(nodes.disk("a"), {}, "").close()
        nodes.node = "a"
        nodes.crawl(1, 2)
    with monkeypatch.context() as patch:

        def meanwhile():
            patch.setattr(*call, lambda *_: 1 / 0)

        with pytest.raises(ZeroDivisionError):
            nodes.begin("a", meanwhile)
    nodes.begin("a")
    assert nodes.pages("a") == [1, 2]


def test_journal_without_epochs_is_never_removed(nodes):
    """The shard began on another node, which could not see this journal."""
    ShardJournal.open(nodes.disk("a"), {}, "").close()
    nodes.begin("b")
    for _ in range(2):
        with pytest.raises(TresError, match="holds another crawl than the snapshots"):
            nodes.begin("a")
    assert (nodes.disk("a") / NAME).exists()


def test_interrupted_restore_begins_again(nodes, monkeypatch):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    with monkeypatch.context() as patch:
        patch.setattr(module, "whole_file", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            nodes.begin("b")
    assert not nodes.disk("b").exists()
    nodes.begin("b")
    assert nodes.pages("b") == [1]


def test_files_are_gathered_from_another_node(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot("today")
    here = nodes.disk("driver")
    assert not gather(here, nodes.snapshots, "tomorrow")
    assert gather(here, nodes.snapshots, "today")
    assert {path.name for path in here.iterdir()} == {"pages.jsonl", NAME, EPOCHS}
    assert nodes.pages("driver") == [1]
    nodes.begin("driver")  # the shard moves there
    nodes.crawl(2)
    assert nodes.pages("driver") == [1, 2]
    assert (here / "pages.jsonl").read_text() == "1\n2\n"


def test_gathered_files_become_old(nodes):
    """The shard goes on where it was: what was gathered is then not its last state."""
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot("today")
    assert gather(nodes.disk("driver"), nodes.snapshots, "today")
    nodes.begin("a")
    nodes.crawl(2)
    nodes.snapshot("tomorrow")
    nodes.begin("driver")
    assert nodes.pages("driver") == [1, 2]


def test_own_files_need_not_be_gathered(nodes):
    nodes.begin("a")
    nodes.crawl(1)
    nodes.snapshot()
    assert gather(nodes.disk("a"), nodes.snapshots, "run")
    assert {NAME, EPOCHS} <= {path.name for path in nodes.disk("a").iterdir()}
