import pytest

from tres_scrapy.cluster.coordinator import (
    EXHAUSTED,
    FAILED,
    PAGE_LIMIT,
    SLOW,
    Coordinator,
    StaleEpochError,
)
from tres_scrapy.cluster.message import Status
from tres_scrapy.cluster.register import Register
from tres_scrapy.url.message import TresError


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def job(tmp_path):
    return tmp_path / "job"


def coordinator_of(job, clock, total=100, shards=2, run="", **more):
    coordinator = Coordinator(Register(job, shards, {"topic": "food"}, run), total, clock, **more)
    return coordinator, [coordinator.begin(shard) for shard in range(shards)]


def test_budget_is_spent_exactly(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    pages, limits = [0, 0], [0, 0]
    for turn in range(1000):
        shard = turn % 2
        status = Status(shard, pages[shard], limit=limits[shard], ready=True)
        orders = coordinator.report(status, epochs[shard])
        limits[shard] = orders.limit
        assert sum(limits) <= 100
        if orders.finish:
            break
        pages[shard] = min(pages[shard] + 1, limits[shard])
        clock.now += 0.1
    assert (sum(pages), orders.finish) == (100, PAGE_LIMIT)


def test_limits_survive_a_restart(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    limit = coordinator.report(Status(0, ready=True), epochs[0]).limit
    coordinator._register.close()
    again, epochs = coordinator_of(job, clock)
    assert limit > 0
    assert again.report(Status(0, limit=limit), epochs[0]).limit == limit


def test_restarted_shard_gives_its_free_pages_back(job, clock):
    coordinator, epochs = coordinator_of(job, clock, total=40)
    limit = coordinator.report(Status(0, pages=20, limit=20, ready=True), epochs[0]).limit
    assert limit > 20
    epoch = coordinator.begin(0)
    assert coordinator.report(Status(0, pages=20, limit=20), epoch).limit == 20
    assert coordinator._budget.left == 20


def test_former_owner_is_refused(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    coordinator.begin(0)
    with pytest.raises(StaleEpochError, match="shard 0 has another owner: epoch 2, not 1"):
        coordinator.report(Status(0), epochs[0])


def test_last_pages_of_a_shard_count(job, clock):
    coordinator, (epoch, _) = coordinator_of(job, clock)
    coordinator.report(Status(0, 5, 2, 10), epoch)
    coordinator.end("shutdown")
    coordinator.closed(Status(0, 7, 0, 10), epoch)
    assert coordinator.overview().state.pages == 7
    with pytest.raises(StaleEpochError):
        coordinator.closed(Status(0, 9), epoch - 1)


def test_crawl_ends_when_nothing_is_left_or_under_way(job, clock):
    coordinator, epochs = coordinator_of(job, clock)

    def report(shard, *, sent=0, received=0, idle=True):
        other = 1 - shard
        counts = {"sent": {other: sent}, "received": {other: received}}
        status = Status(shard, ready=True, idle=idle, **counts)
        return coordinator.report(status, epochs[shard]).finish

    assert not any(report(shard, sent=1, received=0) for shard in (0, 1, 0, 1, 0, 1))
    assert not report(0, sent=1, received=1, idle=False)
    assert not report(1, sent=1, received=1)
    assert not report(0, sent=1, received=1)  # seen first: may have been under way before
    assert not report(1, sent=1, received=1)
    assert report(0, sent=1, received=1) == EXHAUSTED


def test_missing_shard_keeps_crawl_alive(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    status = Status(0, ready=True, idle=True)
    assert not any(coordinator.report(status, epochs[0]).finish for _ in range(9))


def test_commands_reach_each_shard_once(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    coordinator.command("pause")
    coordinator.command("change_max", "5")
    new = coordinator.report(Status(0), epochs[0]).commands
    assert [(each.name, each.value) for each in new] == [("pause", ""), ("change_max", "5")]
    assert not coordinator.report(Status(0, commands=new[-1].number), epochs[0]).commands


def test_commands_hold_for_one_run(job, clock):
    coordinator, _ = coordinator_of(job, clock, run="a")
    coordinator.command("pause")
    coordinator._register.close()
    again, epochs = coordinator_of(job, clock, run="a")  # Ray has started it again
    assert again.report(Status(0), epochs[0]).commands
    again._register.close()
    other, epochs = coordinator_of(job, clock, run="b")  # the user has
    assert not other.report(Status(0), epochs[0]).commands


def test_slow_shard_gives_pages_to_a_hungry_one(job, clock):
    coordinator, epochs = coordinator_of(job, clock, total=24)
    holder = Status(0, pages=20, limit=24, ready=True)
    coordinator._budget.limits = [24, 0]
    coordinator.report(Status(1, ready=True), epochs[1])
    assert coordinator.report(holder, epochs[0]).spare == 1
    clock.now += SLOW + 1
    coordinator.report(Status(1, ready=True), epochs[1])
    assert coordinator.report(holder, epochs[0]).spare == 0


class Worker:
    """A shard that fetches some pages in each turn, if it has links and free pages.

    Each `fails`-th fetch brings no page.
    """

    def __init__(self, number, speed, begins=0, fails=0):
        self.number, self.speed, self.begins, self.fails = number, speed, begins, fails
        self.pages, self.limit, self.tried, self.budget = 0, 0, 0, 0.0

    def work(self, turn):
        self.budget = min(4.0, self.budget + self.speed)
        while turn >= self.begins and self.budget >= 1 and self.pages < self.limit:
            self.budget -= 1
            self.tried += 1
            self.pages += not (self.fails and self.tried % self.fails == 0)

    def status(self, turn):
        return Status(self.number, self.pages, 0, self.limit, ready=True, idle=turn < self.begins)

    def obey(self, orders):
        kept = orders.limit if orders.spare is None else self.pages + orders.spare
        self.limit = max(self.pages, min(orders.limit, kept))


def turns_to_end(job, clock, workers, total, most=4_000):
    """Return after how many turns of a quarter second the crawl ends, and the pages then."""
    coordinator, epochs = coordinator_of(job, clock, total, len(workers))
    coordinator._register.save_limits = lambda limits: None  # it waits for the disk
    for turn in range(most):
        clock.now += 0.25
        for worker in workers:
            worker.work(turn)
            orders = coordinator.report(worker.status(turn), epochs[worker.number])
            assert sum(each.limit for each in workers) <= total
            worker.obey(orders)
            if orders.finish:
                return turn, sum(each.pages for each in workers)
    pytest.fail(f"no end: {[each.pages for each in workers]} of {total} pages")


@pytest.mark.parametrize("begins", [8, 20, 50, 120])
@pytest.mark.parametrize("speed", [0.25, 1, 4])
def test_shards_that_join_late_get_pages(job, clock, begins, speed):
    workers = [Worker(0, speed), *(Worker(number, 1, begins) for number in (1, 2, 3))]
    assert turns_to_end(job, clock, workers, 600)[1] == 600


def test_slow_shard_starves_no_other(job, clock):
    workers = [Worker(0, 1 / 120), Worker(1, 4)]  # a host with a delay of half a minute
    turns, pages = turns_to_end(job, clock, workers, 400)
    assert pages == 400
    assert turns < 400
    assert workers[1].pages > 380


@pytest.mark.parametrize("fails", [0, 2, 3, 7])
def test_failed_fetches_strand_no_page(job, clock, fails):
    workers = [Worker(0, 1), Worker(1, 0.1, fails=fails), Worker(2, 1 / 40, fails=fails)]
    assert turns_to_end(job, clock, workers, 200)[1] == 200


def test_end_survives_a_restart(job, clock):
    coordinator, _ = coordinator_of(job, clock, run="a")
    coordinator.end(FAILED, "no disk")
    coordinator._register.close()
    again, epochs = coordinator_of(job, clock, run="a")
    assert again.report(Status(0), epochs[0]).finish == FAILED
    assert again.overview().error == "no disk"
    again._register.close()
    other, epochs = coordinator_of(job, clock, run="b")  # the user has started it again
    assert not other.report(Status(0), epochs[0]).finish


def test_hopeless_shard_waits_for_others(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    waits, works = Status(0, ready=True, hopeless=True), Status(1, ready=True)
    for _ in range(6):
        assert not coordinator.report(waits, epochs[0]).finish
        assert not coordinator.report(works, epochs[1]).finish
    done = Status(1, ready=True, idle=True)
    ends = [coordinator.report(each, epochs[each.shard]).finish for each in [waits, done] * 3]
    assert ends[-1] == EXHAUSTED


def test_first_error_ends_crawl(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    coordinator.end(FAILED, "no disk")
    coordinator.end("shutdown", "other")
    assert coordinator.report(Status(0), epochs[0]).finish == FAILED
    assert coordinator.overview().error == "no disk"


@pytest.mark.parametrize(
    ("shards", "identity", "said"),
    [
        (3, {"topic": "food"}, "holds a crawl with shards '2', not '3'"),
        (2, {"topic": "sports"}, "holds a crawl with topic 'food', not 'sports'"),
    ],
)
def test_job_of_another_crawl_is_refused(job, clock, shards, identity, said):
    coordinator, _ = coordinator_of(job, clock)
    coordinator._register.close()
    with pytest.raises(TresError, match=said):
        Register(job, shards, identity)


def test_second_coordinator_is_refused(job, clock):
    first, _ = coordinator_of(job, clock)
    with pytest.raises(TresError, match="another process is using"):
        Register(job, 2, {"topic": "food"})
    first._register.close()


def test_last_page_is_fetched_after_a_wait(job, clock):
    coordinator, epochs = coordinator_of(job, clock, total=20)
    limits = [10, 9]
    for _ in range(40):  # both wait for the last page for longer than a stuck shard may
        clock.now += 0.25
        for shard, done in enumerate((10, 9)):
            status = Status(shard, done, 0, limits[shard], ready=True)
            orders = coordinator.report(status, epochs[shard])
            keeps = orders.limit if orders.spare is None else done + orders.spare
            if limits[shard] > done:
                return  # it fetches it
            limits[shard] = max(done, min(orders.limit, keeps))
        if clock.now < 105:
            limits = [10, 9]  # a page under way takes until then
    pytest.fail("no shard may keep the last page")


def test_nothing_is_granted_until_all_have_reported(job, clock):
    """With snapshots the file may be lost, and does not know how many pages there are."""
    coordinator, epochs = coordinator_of(job, clock, total=40, snapshots=True)
    assert coordinator.report(Status(0, pages=5, limit=5, ready=True), epochs[0]).limit == 5
    assert coordinator.report(Status(1, pages=33, limit=33, ready=True), epochs[1]).limit == 35
    assert coordinator.report(Status(0, pages=5, limit=5, ready=True), epochs[0]).limit == 5


def test_crawl_without_budget_grants_with_snapshots(job, clock):
    coordinator, epochs = coordinator_of(job, clock, total=None, snapshots=True)
    assert coordinator.report(Status(0, ready=True), epochs[0]).limit > 0


def test_crawl_ends_when_no_page_can_be_lost(job, clock):
    coordinator, epochs = coordinator_of(job, clock, total=40, snapshots=True)

    def report(shard, pages, *, settled):
        status = Status(shard, pages, limit=pages, ready=True, settled=settled)
        return coordinator.report(status, epochs[shard])

    assert not report(0, 20, settled=True).settle
    orders = report(1, 20, settled=False)
    assert (orders.settle, orders.finish) == (True, "")
    epochs[1] = coordinator.begin(1)  # it is restored from a snapshot
    orders = report(1, 15, settled=True)
    assert (orders.settle, orders.finish) == (False, "")
    assert 15 < orders.limit <= 20  # its lost pages are granted again
    assert report(1, 20, settled=False).settle
    assert report(1, 20, settled=True).finish == PAGE_LIMIT


def test_crawl_without_links_ends_when_nothing_can_be_lost(job, clock):
    coordinator, epochs = coordinator_of(job, clock, snapshots=True)

    def report(shard, *, settled):
        status = Status(shard, ready=True, idle=True, settled=settled)
        return coordinator.report(status, epochs[shard])

    assert not any(report(shard, settled=False).finish for shard in (0, 1) * 4)
    assert report(0, settled=False).settle
    report(0, settled=True)
    assert report(1, settled=True).finish == EXHAUSTED


def test_restored_sender_has_nothing_under_way(job, clock):
    """A receiver has batches that its sender has forgotten."""
    coordinator, epochs = coordinator_of(job, clock)

    def report(shard, sent, received):
        counts = {"sent": {1 - shard: sent}, "received": {1 - shard: received}}
        return coordinator.report(Status(shard, ready=True, idle=True, **counts), epochs[shard])

    pair = (0, 3, 1 << 33), (1, 1 << 32, 7)  # sent 3, of which 7 have arrived
    assert [report(*each).finish for each in pair * 3][-1] == EXHAUSTED


def test_epoch_is_above_those_of_lost_files(job, clock):
    coordinator, _ = coordinator_of(job, clock)
    assert coordinator.begin(0, 7) == 8
    assert coordinator.begin(0, 3) == 9


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [("", "s3://a", None), ("s3://a", "s3://a", None), ("s3://a", "", "s3://a: give that again")],
)
def test_crawl_keeps_its_snapshots(job, before, now, said):
    Register(job, 2, {}, snapshots="s3://unusable").close()  # no shard has begun
    register = Register(job, 2, {}, snapshots=before)
    register.begin(0)
    register.close()
    if said is None:
        Register(job, 2, {}, snapshots=now).close()
        return
    with pytest.raises(TresError, match=said):
        Register(job, 2, {}, snapshots=now)


def test_crawl_that_was_started_elsewhere_ends(job, clock):
    coordinator, epochs = coordinator_of(job, clock)
    former, epochs[0] = epochs[0], coordinator.begin(0)
    coordinator.overtaken(0, former)  # by the owner that was begun here
    assert not coordinator.report(Status(0), epochs[0]).finish
    coordinator.overtaken(0, epochs[0])
    assert coordinator.report(Status(0), epochs[0]).finish == FAILED
    assert "was the crawl started twice?" in coordinator.overview().error
