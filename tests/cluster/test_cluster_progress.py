import itertools
import logging

from tres_scrapy.cluster.coordinator import Overview
from tres_scrapy.cluster.message import SNAPSHOT_ERROR, Status
from tres_scrapy.cluster.view import EVERY, START_UP, ClusterProgress


def test_shard_without_snapshots_is_named_once(caplog):
    caplog.set_level(logging.INFO)
    progress = ClusterProgress(10, 3)
    for error in ("", "no room", "no room", ""):
        status = Status(2, figures={SNAPSHOT_ERROR: error})
        progress.show(Overview({2: status}, {2: 0.1}, 10, "", "", 3))
    assert caplog.messages == [
        "Shard 2 has no new snapshot, and tries again: no room",
        "Shard 2 has a new snapshot",
    ]


def test_shards_that_start_together_are_not_missed(caplog):
    caplog.set_level(logging.WARNING)
    clock = iter([0.0, *[2 * START_UP] * 3])
    progress = ClusterProgress(10, 2, clock=lambda: next(clock))
    progress.show(Overview({}, {}, 10, "", "", 2))
    assert not caplog.messages
    progress.show(Overview({1: Status(1)}, {1: 0.1}, 10, "", "", 2))
    assert caplog.messages == ["Shard 0 does not report; the others go on"]


def test_speed_counts_pages_since_this_start(caplog):
    caplog.set_level(logging.INFO)
    now = [0.0]
    progress = ClusterProgress(500, 2, clock=lambda: now[0])

    def overview(*pages):
        statuses = {shard: Status(shard, pages=count) for shard, count in enumerate(pages)}
        return Overview(statuses, dict.fromkeys(statuses, 0.1), 500, "", "", 2)

    for now[0], pages in ((1.0, ()), (11.0, (150, 140)), (21.0, (200, 190))):
        progress.show(overview(*pages))
    progress.close(overview(200, 190))
    assert "starting: 0 of 2 shards report" not in caplog.text, "not yet"
    assert caplog.messages[-1] == (
        "390/500 pages, harvest rate 0.0 %, 0 relevant domains, 10.0 pages/s since this start, "
        "frontier 0, 2 shards"
    )


def test_shards_that_report_are_counted(caplog):
    caplog.set_level(logging.INFO)
    clock = itertools.count(step=EVERY)
    progress = ClusterProgress(500, 2, clock=lambda: next(clock))
    progress.show(Overview({0: Status(0)}, {0: 0.1}, 500, "", "", 2))
    assert caplog.messages == ["starting: 1 of 2 shards report"]
    progress.show(Overview({0: Status(0), 1: Status(1)}, {0: 0.1, 1: 99.0}, 500, "", "", 2))
    assert caplog.messages[-1].endswith("frontier 0, 1 of 2 shards")
