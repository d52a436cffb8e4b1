"""A crawl that is broken off and recovered from its journal is the crawl it was."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tres_scrapy.frontier.ledger import Cap, DomainLedger
from tres_scrapy.frontier.limit import FrontierLimits
from tres_scrapy.frontier.store import SampleStore, Standing, State
from tres_scrapy.job.database import NAME, JobError
from tres_scrapy.job.journal import Journal
from tres_scrapy.job.recovery import items, marks, recover
from tres_scrapy.policies.crawl import Crawl
from tres_scrapy.policies.registry import POLICIES, make_policy
from tres_scrapy.policies.resumption import Resumable
from tres_scrapy.policies.setup import LearningOptions, Setup

RESUMABLE = ["tres", "tres_nh", "tree_random", "random"]
SETUP = Setup(learning=LearningOptions(exploration_steps=3, replay_capacity=12, batch_size=4))


def new_crawl(policy="tres", limit=None):
    limits = FrontierLimits(pending=40, pending_per_domain=4, failures=2)
    store = SampleStore(DomainLedger(Cap(3, 3), limits=limits))
    return Crawl(store, make_policy(policy, store, SETUP), limit)


def seed(crawl):
    crawl.add_seeds(["http://h0.test/0"], [""], np.zeros((1, 3), dtype=np.float32))


class Web:
    """A web of twenty hosts where every third page is relevant, every seventh dead."""

    def __init__(self, crawl, journal):
        self.crawl, self.journal = crawl, journal
        self.leased = []
        self.state = crawl.policy.state()

    def lease(self):
        decision = self.crawl.next()
        if decision is not None:
            self.journal.lease(self.crawl, decision)
            self.leased.append(decision.row)
            self.state = self.crawl.policy.state()

    def book(self):
        if not self.leased:
            return
        row = self.leased.pop(0)
        url = self.crawl.store.url(row)
        number = int(url.rpartition("/")[2])
        if number % 7 == 6:
            booking, note = self.crawl.book_failure(row, "http_404"), ()
        else:
            if number % 5 == 4:
                self.crawl.redirect(row, f"http://r{number % 3}.test/{number}")
            links = [f"http://h{(number * 3 + i) % 20}.test/{number * 2 + i}" for i in range(1, 5)]
            actions = np.random.default_rng(number).random((4, 3), dtype=np.float32)
            reward = float(number % 3 == 0)
            booking = self.crawl.book_page(row, reward, links, ["an\0chor"] * 4, actions)
            note = str(number).encode(), str(row)
        self.journal.book(self.crawl, booking, *note)
        self.state = self.crawl.policy.state()


def state_of(crawl):
    """All that a crawl knows, dead samples and the places of rows within leaves left out."""
    store, policy = crawl.store, crawl.policy
    rows = np.arange(len(store))
    pending = store.pending_rows()
    alive = pending[store.standing(pending) != Standing.DEAD]
    known = {
        "urls": [store.url(row) for row in rows.tolist()],
        "trails": [store.trail(row) for row in rows.tolist()],
        "anchors": store.anchors,
        "features": store.features(rows).tolist(),
        "alive": alive.tolist(),
        "closed": [store.is_closed(url) for url in store.urls],
        "ledger": visits_of(store.ledger),
        "counts": (crawl.pages, crawl.relevant, crawl.failures),
        "rules": list(policy.rules),
        "state": policy.state(),
    }
    if hasattr(policy, "tree"):
        tree = policy.tree
        known["experiences"] = [tree.rewards(leaf).tolist() for leaf in range(len(tree))]
        x = tree._experiences["x"]
        known["x"] = [x[leaf.experiences].tolist() for leaf in tree.leaves]
    if hasattr(policy, "_learner"):
        learner = policy._learner
        known["replay"] = learner._replay._records.tobytes(), learner._replay._added
        known["incomplete"] = learner._incomplete
        known["steps"] = learner.steps
    return known


def visits_of(ledger):
    columns = (ledger._records[name] for name in ("visits", "pages", "relevant", "failures"))
    counts = dict(zip(ledger.names, np.stack(list(columns), axis=1).tolist(), strict=True))
    return {name: count for name, count in counts.items() if any(count)}


def frontier_of(crawl):
    """The samples that the policy can choose among."""
    pool = crawl.policy.tree.pool if hasattr(crawl.policy, "tree") else crawl.policy._pool
    rows = np.concatenate([pool.rows(leaf) for leaf in range(len(pool._segments))])
    return sorted(row for row in rows.tolist() if crawl.store.standing(np.array([row]))[0])


@pytest.mark.parametrize("policy", RESUMABLE)
@settings(max_examples=25, deadline=None)
@given(events=st.lists(st.sampled_from("LLBK"), max_size=60))
def test_a_crawl_killed_anywhere_goes_on_where_it_was(policy, tmp_path_factory, events):
    """L leases, B books, K kills: after each K a new crawl knows all that the old one knew."""
    directory = tmp_path_factory.mktemp("job")
    journal, crawl = Journal.open(directory, {}), new_crawl(policy)
    seed(crawl)
    web = Web(crawl, journal)
    web.lease()
    for event in [*events, "K"]:
        if event == "L":
            web.lease()
        elif event == "B":
            web.book()
        else:
            journal.connection.close()  # as the end of the process would
            journal, resumed = Journal.open(directory, {}), new_crawl(policy)
            recover(journal, resumed)
            for row in web.leased:  # what was under way is to be fetched again
                crawl.store._samples["state"][row] = State.PENDING
                crawl.store.ledger.lease(crawl.store.domain(row), -1)
                crawl.store._closed["closed"][crawl.store.url_id(row)] = False
            expected = state_of(crawl) | {"state": web.state}
            assert state_of(resumed) == expected
            assert set(frontier_of(resumed)) == set(expected["alive"]) - set(web.leased)
            again = web.leased
            crawl, web = resumed, Web(resumed, journal)
            for _ in again:
                web.lease()
            assert sorted(web.leased) == sorted(again)
    journal.close()


def a_job(directory, steps=30):
    journal, crawl = Journal.open(directory, {"topic": "food"}), new_crawl()
    seed(crawl)
    web = Web(crawl, journal)
    for _ in range(steps):
        web.lease()
        web.book()
    return journal, crawl


def test_items_stay_until_they_are_exported(tmp_path):
    journal, _ = a_job(tmp_path, steps=4)
    kept = items(journal)
    assert len(kept) > 1
    first = min(kept)
    journal.export(first)
    journal.close()
    journal = Journal.open(tmp_path, {"topic": "food"})
    assert items(journal) == {row: item for row, item in kept.items() if row != first}
    journal.close()


def test_marks_come_back_in_their_order(tmp_path):
    journal, crawl = a_job(tmp_path)
    assert len(marks(journal)) == crawl.pages
    journal.close()


def test_rows_of_a_lease_that_was_rolled_back_are_written_with_the_next(tmp_path):
    journal, crawl = a_job(tmp_path, steps=5)
    journal.connection.execute("PRAGMA query_only = ON")
    decision = crawl.next()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        journal.lease(crawl, decision)
    journal.connection.execute("PRAGMA query_only = OFF")
    journal.lease(crawl, decision)
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    assert resumed.store.urls == crawl.store.urls
    assert resumed.next().row == decision.row
    journal.close()


def test_full_disk_leaves_what_was_written(tmp_path):
    journal, crawl = a_job(tmp_path, steps=5)
    pages = journal.connection.execute("PRAGMA page_count").fetchone()[0]
    journal.connection.execute(f"PRAGMA max_page_count = {pages}")
    web, written = Web(crawl, journal), []

    def go_on():
        for _ in range(200):
            written.append(journal.steps)
            web.lease()
            web.book()

    with pytest.raises(sqlite3.OperationalError, match="full"):
        go_on()
    journal.connection.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    assert journal.steps == resumed.pages + resumed.failures.total() == written[-1]
    journal.close()


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_that_can_be_resumed_are_known(policy):
    setup = Setup(labels=lambda urls: [], similarity=lambda texts: [], search="http://s/?{query}")
    store = SampleStore(DomainLedger())
    resumable = isinstance(make_policy(policy, store, setup), Resumable)
    assert resumable == (policy in [*RESUMABLE, "tres_svm"])


def damaged(statement):
    def damage(directory):
        a_job(directory)[0].close()
        with sqlite3.connect(directory / NAME) as connection:
            connection.execute(statement)
        connection.close()

    return damage


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batch SET samples = x'00' WHERE number = 1",
        "UPDATE batch SET anchors = '[]' WHERE number = 2",
        "UPDATE batch SET urls = '[1, 2]'",
        "UPDATE batch SET urls = 'none'",
        "UPDATE batch SET urls = replace(urls, 'http:', 'file:')",
        "DELETE FROM batch WHERE number = 3",
        "UPDATE step SET row = 10000",
        "UPDATE step SET row = -1",
        "UPDATE step SET row = 'a'",
        "UPDATE step SET url = -5",
        "UPDATE step SET host = 99999",
        "UPDATE step SET x = x'0000'",
        "UPDATE step SET first = 100000, outlinks = 5",
        "UPDATE step SET outlinks = -3",
        "UPDATE step SET sampled = -7",
        "UPDATE step SET sampled = 9223372036854775807",
        "UPDATE rule SET leaf = 400",
        "UPDATE rule SET feature = 8",
        "UPDATE state SET value = x'00' WHERE name = 'agent'",
        "UPDATE state SET value = zeroblob(length(value)) WHERE name = 'random'",
        "UPDATE state SET value = '{}' WHERE name = 'counts'",
        "DELETE FROM state",
        "INSERT OR REPLACE INTO lease VALUES (100000, 0, 0, 0)",
    ],
)
def test_damage_is_told_in_one_line(tmp_path, statement):
    damaged(statement)(tmp_path)
    journal = Journal.open(tmp_path, {})
    with pytest.raises(JobError, match="damaged") as error:
        recover(journal, new_crawl())
    assert "\n" not in str(error.value)
    journal.close()


def test_sample_whose_own_request_is_lost_is_dropped_even_if_it_was_leased(tmp_path):
    journal, crawl = a_job(tmp_path, steps=6)
    leased = crawl.next()
    journal.lease(crawl, leased)
    kept = crawl.store.pending_rows()[:3].tolist()
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed, own=kept)
    assert set(resumed.store.pending_rows().tolist()) <= set(kept)
    rows = [decision.row for decision in iter(resumed.next, None)]
    assert leased.row not in rows
    assert set(rows) <= set(kept)
    journal.close()
