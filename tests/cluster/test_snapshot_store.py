import pytest

pytest.importorskip("fsspec", reason="needs the extra cluster")
from tres_scrapy.cluster.snapshot import (
    BLOCK,
    OvertakenError,
    Snapshot,
    SnapshotFolder,
    begin_run,
    crawl_at,
)
from tres_scrapy.url.message import TresError


@pytest.fixture
def url(tmp_path):
    return f"file://{tmp_path}/store"


@pytest.fixture
def owner(url):
    """Return what makes a new owner of the snapshots of a shard."""
    begin_run(url, {}, "")

    def become(epoch):
        folder = SnapshotFolder(f"{url}/shard-0")
        folder.claim(epoch)
        return folder

    return become


@pytest.fixture
def write(tmp_path):
    """Return what takes a snapshot of one file with some contents."""

    def snapshot(folder, data, size=None):
        (tmp_path / "file").write_bytes(data)
        size = len(data) if size is None else size
        folder.write({"file": (tmp_path / "file", size)}, f"run {len(data)}")

    return snapshot


def fetched(folder, tmp_path, snapshot=None):
    folder.fetch(snapshot or folder.latest(), tmp_path)
    return (tmp_path / "file").read_bytes()


def stored(tmp_path, pattern="*"):
    return sorted((tmp_path / "store/shard-0").glob(pattern))


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, 2 * BLOCK + 5])
def test_snapshot_comes_back(owner, write, tmp_path, size):
    data = bytes(number % 251 for number in range(size))
    write(owner(1), data)
    assert fetched(owner(2), tmp_path) == data
    snapshot = owner(3).latest()
    assert (snapshot.epoch, snapshot.run) == (1, f"run {size}")


def test_only_the_first_bytes_are_kept(owner, write, tmp_path):
    write(owner(1), b"a\nb\n", size=2)
    assert fetched(owner(2), tmp_path) == b"a\n"


def test_file_that_became_shorter_is_refused(owner, write):
    with pytest.raises(OSError, match="is shorter than it was"):
        write(owner(1), b"a", size=2)


def test_older_snapshots_are_removed(owner, write, tmp_path):
    folder = owner(1)
    write(folder, b"a")
    write(folder, b"b")
    assert len(stored(tmp_path)) == 3  # the claim, the list and the file
    folder = owner(2)
    write(folder, b"c")
    assert {path.name[:10] for path in stored(tmp_path)} == {"0000000002"}
    assert fetched(folder, tmp_path) == b"c"


def test_torn_snapshot_is_not_read(owner, write, tmp_path):
    folder = owner(1)
    write(folder, b"old")
    (whole,) = stored(tmp_path, "*.snapshot")
    data = whole.read_bytes()
    for cut in range(len(data)):
        whole.with_name("0000000001-0000000002.snapshot").write_bytes(data[:cut])
        assert fetched(folder, tmp_path) == b"old"


def test_torn_file_is_noticed(owner, write, tmp_path):
    write(owner(1), b"data")
    (path,) = stored(tmp_path, "*-file")
    path.write_bytes(b"dat")
    with pytest.raises(TresError, match=r"shard-0 is damaged: 0000000001-.*-file$"):
        fetched(owner(2), tmp_path)


def test_former_owner_replaces_nothing(owner, write, tmp_path):
    former = owner(1)
    write(former, b"first")
    newer = owner(2)
    first = newer.latest()
    with pytest.raises(OvertakenError, match="shard-0 has another owner"):
        write(former, b"too late")
    assert fetched(newer, tmp_path, first) == b"first"  # nothing of it was removed
    write(newer, b"second")
    with pytest.raises(OvertakenError):
        write(former, b"far too late")
    assert fetched(owner(3), tmp_path) == b"second"


def test_snapshot_before_the_next_claim_counts(owner, write, tmp_path):
    """What a former owner could confirm, the next one has."""
    write(owner(1), b"confirmed")
    assert fetched(owner(2), tmp_path) == b"confirmed"


def test_two_owners_of_one_epoch_both_stop(owner, write):
    first = owner(1)
    with pytest.raises(OvertakenError):
        owner(1)
    with pytest.raises(OvertakenError):
        write(first, b"data")


def test_owner_that_claims_late_stops(owner):
    owner(2)
    with pytest.raises(OvertakenError) as caught:
        owner(1)
    assert caught.value.epoch == 1


def test_epochs_of_all_owners_are_known(owner, write, url):
    assert SnapshotFolder(f"{url}/shard-0").epochs() == set()
    folder = owner(7)
    assert folder.epochs() == {7}
    write(folder, b"data")
    assert owner(8).epochs() == {7, 8}


def test_interrupted_snapshot_is_not_read(owner, write, tmp_path, monkeypatch):
    folder = owner(1)
    write(folder, b"old")
    with monkeypatch.context() as patch:
        patch.setattr(folder._files, "pipe_file", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            write(folder, b"new")
    assert fetched(folder, tmp_path) == b"old"


def test_snapshot_that_cannot_be_read_is_not_passed_over(owner, write, monkeypatch):
    """An older one would count instead."""
    folder = owner(1)
    write(folder, b"data")

    def fail(*arguments):
        raise TimeoutError("away")

    monkeypatch.setattr(folder._files, "cat_file", fail)
    with pytest.raises(TimeoutError):
        folder.latest()
    with pytest.raises(TimeoutError):
        crawl_at(folder.url.removesuffix("/shard-0"))


def test_crawl_begins_again_in_its_place(url):
    for run in ("a", "b"):
        assert crawl_at(url).get("run") != run
        begin_run(url, {"topic": "food"}, run)
        assert crawl_at(url) == {"topic": "food", "run": run}


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("foo://x/y", "--snapshots foo://x/y: Protocol not known: foo"),
        ("file:///proc/none", "--snapshots file:///proc/none: .*/proc/none"),
        ("file:///dev/null", "--snapshots file:///dev/null: .*/dev/null"),
    ],
)
def test_unusable_place_is_named(where, said):
    with pytest.raises(TresError, match=said) as caught:
        begin_run(where, {}, "")
    assert "\n" not in str(caught.value)


def test_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "s3fs", None)
    with pytest.raises(TresError, match=r"^--snapshots s3://bucket/food: Install s3fs"):
        begin_run("s3://bucket/food", {}, "")


def test_place_of_another_crawl_is_refused(url):
    begin_run(url, {"topic": "food", "shards": "2"}, "a")
    with pytest.raises(TresError, match="holds a crawl with shards '2', not '3': give another"):
        begin_run(url, {"topic": "food", "shards": "3"}, "b")
    assert crawl_at(url)["run"] == "a"


@pytest.mark.parametrize("content", ["", "3", "[1]", "{", "\xff"])
def test_file_of_another_program_is_refused(url, tmp_path, content):
    (tmp_path / "store").mkdir()
    (tmp_path / "store/crawl.json").write_text(content)
    with pytest.raises(TresError, match=r"crawl\.json is not a file of TRES"):
        begin_run(url, {"topic": "food"}, "")


def test_names_cannot_leave_their_folder(owner, tmp_path):
    """Anyone who can write to the storage can name a file ../../file."""
    folder, inside = owner(1), tmp_path / "a/b"
    place = tmp_path / "store/shard-0/x-../file"
    place.parent.mkdir()
    place.write_bytes(b"data")
    inside.mkdir(parents=True)
    folder.fetch(Snapshot(1, "x", {"../file": 4}, ""), inside)
    assert [path.name for path in inside.iterdir()] == ["file"]
