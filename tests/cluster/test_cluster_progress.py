import logging

from tres_scrapy.cluster import progress as progress_line
from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import SNAPSHOT_ERROR, Status
from tres_scrapy.cluster.progress import START_UP, ClusterProgress


def test_shard_without_snapshots_is_named_once(caplog):
    caplog.set_level(logging.INFO)
    progress = ClusterProgress()
    for error in ("", "no room", "no room", ""):
        status = Status(2, figures={SNAPSHOT_ERROR: error})
        progress.show(Overview({2: status}, {2: 0.1}, 10, "", "", 3))
    assert caplog.messages == [
        "Shard 2 has no new snapshot, and tries again: no room",
        "Shard 2 has a new snapshot",
    ]


def test_shards_that_start_together_are_not_missed(caplog):
    caplog.set_level(logging.WARNING)
    progress = ClusterProgress()
    progress._begun -= 2 * START_UP
    progress.show(Overview({}, {}, 10, "", "", 2))
    assert not caplog.messages
    progress.show(Overview({1: Status(1)}, {1: 0.1}, 10, "", "", 2))
    assert caplog.messages == ["Shard 0 does not report; the others go on"]


def test_speed_counts_pages_since_this_start(caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    clock = iter([0.0, 0.0, 1.0, 11.0, 21.0])
    monkeypatch.setattr(progress_line, "monotonic", lambda: next(clock))
    progress = ClusterProgress()

    def overview(*pages):
        statuses = {shard: Status(shard, pages=count) for shard, count in enumerate(pages)}
        return Overview(statuses, dict.fromkeys(statuses, 0.1), 500, "", "", 2)

    progress.show(overview())
    progress.show(overview(150, 140))
    progress.show(overview(200, 190))
    progress.close(overview(200, 190))
    assert caplog.messages[-1] == (
        "390/500 pages, harvest rate 0.0 %, 0 relevant domains, 10.0 pages/s since this start, "
        "frontier 0, 2 shards"
    )
