import logging

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.progress_line import START_UP, ClusterProgress
from tres_scrapy.cluster.status import SNAPSHOT_ERROR, Status


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
