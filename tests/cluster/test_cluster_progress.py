import logging

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.progress_line import ClusterProgress
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
