"""An interrupted crawl that is recovered from its journal continues as before."""

import sqlite3
from contextlib import suppress
from dataclasses import replace
from random import Random
from shutil import copytree
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judged import judged
from plain_policy import PlainPolicy

from tres_scrapy.agent import link_learner
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.learning import LearningOptions, LinkOptions
from tres_scrapy.config.limit import Cap, FrontierLimits
from tres_scrapy.crawl import verdict as revision
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.registry import POLICIES, make_policy
from tres_scrapy.crawl.scout import Scout
from tres_scrapy.extensions.job import Job
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.feature import LINK, STATIC
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import Eligibility, SampleStore, State
from tres_scrapy.links.code import CODES, RaggedArray
from tres_scrapy.page.copies import SKETCH, Known
from tres_scrapy.run import recovery
from tres_scrapy.run.identity import now
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import items, marks, recover
from tres_scrapy.run.run_file import NAME
from tres_scrapy.url.message import TresError

with suppress(ImportError):  # it names more policies
    import rivals  # noqa: F401

RESUMABLE = [each for each in ("tres", "tree_random", "random") if each in POLICIES]
SETUP = PolicyInputs(
    learning=LearningOptions(exploration_steps=3, replay_capacity=12, batch_size=4)
)


def new_crawl(policy="tres", limit=None, setup=SETUP, *, scout=False, **options):
    limits = FrontierLimits(pending=40, pending_per_domain=4, failures=2)
    store = SampleStore(DomainLedger(Cap(3, 3), inlinks=True, limits=limits))
    scout = Scout(store) if scout else None
    chosen = PlainPolicy(store) if policy == "plain" else make_policy(policy, store, setup)
    return Crawl(store, chosen, limit, scout=scout, **options)


def seed(crawl, numbers=(0,)):
    urls = [f"http://h0.test/{number}" for number in numbers]
    actions = np.zeros((len(urls), 3), dtype=np.float32)
    crawl.add_seeds(Outlinks(urls, [""] * len(urls), actions))


@pytest.fixture(autouse=True, scope="module")
def frequent_checkpoints():
    """Save the link model after every few experiences."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link_learner, "CHECKPOINT", 5)
        yield


class Web:
    """A web of twenty hosts: every third URL is a relevant page, every seventh is not a page.

    Half of the latter have links, as a sitemap does.
    """

    def __init__(self, crawl, journal):
        self.crawl, self.journal = crawl, journal
        self.learns = False  # whether the topic changes with every fourth page
        self.leased = []
        self.state = crawl.policy.state()

    def lease(self):
        decision = self.crawl.next()
        if decision is not None:
            self.journal.lease(self.crawl, decision)
            self.leased.append(decision.row)
            self.state = self.crawl.policy.state()

    def set_back(self):
        """Let the host of a fetch fail; the link is leased again at once."""
        if self.leased:
            self.crawl.set_back(self.leased.pop(0))
            self.lease()

    def redirect(self):
        """Redirect the fetch that came first, through two URLs."""
        if self.leased:
            number = self.leased[0]
            for host in "qr":
                self._move(number, f"http://{host}{number % 3}.test/{number}")

    def _move(self, row, url):
        if self.crawl.redirect(row, url):
            self.journal.redirect(self.crawl, row)

    def book(self):
        if not self.leased:
            return
        row = self.leased.pop(0)
        url = self.crawl.store.url(row)
        number = int(url.rpartition("/")[2])
        if self.learns:
            self.describe(self.crawl.revision.take())
        urls = [f"http://h{(number * 3 + i) % 20}.test/{number * 2 + i}" for i in range(1, 5)]
        actions = np.random.default_rng(number).random((4, 3), dtype=np.float32)
        cues = None if number % 4 == 1 else RaggedArray.of([[], [CODES - 1], [number, 7], [3]])
        links = Outlinks(urls, ["an\0chor"] * 4, actions, cues)
        if number % 14 == 6:
            kind = "robots" if number % 4 == 2 else "http_404"
            booking, items = self.crawl.book(row, Failure(kind)), ()
        elif number % 14 == 13:
            booking, items = self.crawl.book(row, None, links), ()
        else:
            if number % 10 == 9:
                self._move(row, f"http://q{number % 3}.test/{number}")
            if number % 5 == 4:
                self._move(row, f"http://r{number % 3}.test/{number}")
            reward = float(number % 3 == 0)
            self.crawl.counts["duplicates"] += number % 3 == 1
            page = judged(reward, mark=str(number).encode().ljust(SKETCH))
            booking, items = self.crawl.book(row, page, links), [str(row), None, "another"]
        self.journal.book(self.crawl, booking, items)
        self.state = self.crawl.policy.state()

    def describe(self, waiting):
        """Judge a page by the model of the moment, and with it links that wait."""
        random = np.random.default_rng(self.crawl.pages)
        self.crawl.revise(waiting, random.random((len(waiting), 3), dtype=np.float32))
        self.crawl.revision.note(f"model-{self.crawl.pages // 4}", described=len(waiting) > 0)


def state_of(crawl):
    """Return the state of a crawl, without dead samples and the order of rows within leaves."""
    store, policy = crawl.store, crawl.policy
    rows = np.arange(len(store))
    pending = store.pending_rows()
    alive = pending[store.eligibility(pending) != Eligibility.DEAD]
    known = {
        "urls": [store.url(row) for row in rows.tolist()],
        "trails": [store.trail(row) for row in rows.tolist()],
        "anchors": list(store.anchors),
        "features": store.features(rows)[:, :LINK].tolist(),  # a resumed crawl rates links again
        "alive": alive.tolist(),
        "closed": [store.closure.is_closed(url) for url in store.closure.urls],
        "ledger": visits_of(store.ledger),
        "links": links_of(store.ledger),
        "cues": [column.tolist() for column in store.cues.since(0)],
        "counts": (
            crawl.pages,
            crawl.relevant,
            crawl.failures,
            crawl.counts,
            store.admission.left_out,
        ),
        "rules": list(policy.rules),
        "state": policy.state(),
    }
    if hasattr(policy, "tree"):
        tree = policy.tree
        known["experiences"] = [tree.rewards(leaf).tolist() for leaf in range(len(tree))]
        x = tree._experiences["x"]
        known["x"] = [x[leaf.experiences].tolist() for leaf in tree.leaves]
    if getattr(policy, "_links", None) is not None:
        links = policy._links
        known["link model"] = links.model.state()
        known["kept"] = [
            (*map(np.ndarray.tolist, link), reward) for link, reward in links._trainer.kept
        ]
        known["learned"] = links._trainer.seen, links._trainer._random.bit_generator.state
        known["siblings"] = [links._links[name].tolist() for name in ("fetched", "relevant")]
        hosts = np.arange(len(store.hosts.names), dtype=np.int32)
        known["hosts"] = links._hosts.logits(hosts).tolist(), links._hosts.beliefs(hosts).tolist()
    if hasattr(policy, "_learner"):
        learner = policy._learner
        known["replay"] = learner._replay._records.tobytes(), learner._replay._added
        known["incomplete"] = learner._incomplete
        known["steps"] = learner.steps
    return known


def visits_of(ledger):
    told = ("visits", "pages", "relevant", "failures", "inlinks", "relevant_inlinks")
    columns = (ledger._records[name] for name in told)
    counts = dict(zip(ledger.names, np.stack(list(columns), axis=1).tolist(), strict=True))
    return {name: count for name, count in counts.items() if any(count)}


def links_of(ledger):
    return sorted(
        (ledger.names[link >> 32], ledger.names[link % 2**32])
        for link in ledger.links.values().tolist()
    )


def frontier_of(crawl):
    """Return the samples that the policy can choose."""
    pool = getattr(crawl.policy, "tree", crawl.policy).pool
    rows = np.concatenate([pool.rows(leaf) for leaf in range(len(pool.sizes()))])
    return sorted(row for row in rows.tolist() if crawl.store.eligibility(np.array([row]))[0])


@pytest.mark.slow
@pytest.mark.parametrize("policy", RESUMABLE)
@settings(max_examples=settings.default.max_examples // 4)
@given(events=st.lists(st.sampled_from("LLBSKR"), max_size=60))
@example(events=list("BLLLLBBBLLLLLLLLBBLBBLL"))  # a link dropped because a duplicate is under way
@example(events=list("LLBBLLLSLB"))
@example(events=list("BLBLLSBLLLLSLLS"))
@example(events=list("LLBRKLBRSLKB"))
def test_killed_crawl_resumes_anywhere(policy, tmp_path_factory, events):
    """L leases, R redirects, B books, S sets back, K kills: a new crawl has the old one's state."""
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
        elif event == "S":
            web.set_back()
        elif event == "R":
            web.redirect()
        else:
            journal.database.close()  # as the end of the process does
            journal, resumed = Journal.open(directory, {}), new_crawl(policy)
            recover(journal, resumed)
            for row in web.leased:  # requests under way will be fetched again, and their duplicates
                alike = crawl.store["url"] == crawl.store["url"][row]
                crawl.store["state"][alike] = State.PENDING
                crawl.store.ledger.count_lease(crawl.store["domain"][row], -1)
                crawl.store.closure._closed["closed"][crawl.store["url"][row]] = False
            expected = state_of(crawl) | {"state": web.state}
            assert state_of(resumed) == expected
            assert set(frontier_of(resumed)) == set(expected["alive"]) - set(web.leased)
            again = web.leased
            crawl, web = resumed, Web(resumed, journal)
            for _ in again:
                web.lease()
            given_up = np.array(sorted(set(again) - set(web.leased)), dtype=np.int64)
            domains = crawl.store["domain"].take(given_up)  # given up after these links were leased
            assert crawl.store.ledger.exhausted(domains).all()
    journal.close()


def keep_ratings(crawl, resumed):
    """Give links of a resumed crawl the ratings of the killed one, which were older."""
    resumed.store["probability"][:] = crawl.store["probability"][: len(resumed.store)]
    policy = resumed.policy
    policy._best, policy._best._store = crawl.policy._best, resumed.store
    if policy._links is not None:
        for name in ("_next", "_links", "_hosts"):
            setattr(policy._links, name, getattr(crawl.policy._links, name))


def order_of(directory, setup, kills=(), seeds=(0,), *, learns=False, **options):
    """Return the URLs that a crawl chooses.

    A killed crawl keeps the order of rows in leaves and the ratings of links.
    """
    journal, crawl = Journal.open(directory, {}), new_crawl(setup=setup, **options)
    seed(crawl, seeds)
    web, order = Web(crawl, journal), []
    web.learns = learns
    web.lease()
    while web.leased:
        order.append(crawl.store.url(web.leased[0]))
        if len(order) in kills:
            journal.database.close()
            journal, resumed = Journal.open(directory, {}), new_crawl(setup=setup, **options)
            recover(journal, resumed)
            keep_ratings(crawl, resumed)
            pool = resumed.policy.tree.pool = crawl.policy.tree.pool
            rows = [pool.rows(leaf) for leaf in range(len(crawl.policy.tree))]
            rows.append(crawl.store.seeds())
            gone = np.setdiff1d(resumed.store.pending_rows(), np.concatenate([*rows, web.leased]))
            resumed.store.drop(gone)
            crawl, web = resumed, Web(resumed, journal)
            web.learns = learns
            web.lease()
        web.book()
        web.lease()
    journal.close()
    return order


@pytest.mark.slow
@pytest.mark.parametrize("link_model", [False, True])
def test_killed_crawl_differs_by_leaves_and_ratings_alone(tmp_path, monkeypatch, link_model):
    """Networks, link model, replay and random state are unchanged: the same URLs follow."""
    monkeypatch.setattr(recovery, "_drop_dead", lambda store: store.pending_rows())
    setup = replace(SETUP, links=LinkOptions(enabled=link_model))
    whole = order_of(tmp_path / "whole", setup)
    assert len(whole) > 40
    assert order_of(tmp_path / "killed", setup, kills={2, 7, 8, 20, 33}) == whole


def test_resumed_crawl_takes_the_same_random_links(tmp_path, monkeypatch):
    """The first seed fails, but has links; one link of the second fails."""
    monkeypatch.setattr(recovery, "_drop_dead", lambda store: store.pending_rows())
    given = {"seeds": (13, 8), "scout": True, "limit": 12}
    whole = order_of(tmp_path / "whole", SETUP, **given)
    assert "http://h8.test/20" in whole[2:12]
    assert order_of(tmp_path / "killed", SETUP, kills=range(1, 20), **given) == whole


@pytest.mark.slow
def test_resumed_crawl_knows_links_that_were_described_again(tmp_path, monkeypatch):
    monkeypatch.setattr(recovery, "_drop_dead", lambda store: store.pending_rows())
    monkeypatch.setattr(revision, "DESCRIBED_SAMPLES", 5)
    whole = order_of(tmp_path / "whole", SETUP, learns=True)
    assert whole != order_of(tmp_path / "unchanged", SETUP)
    killed = order_of(tmp_path / "killed", SETUP, kills=range(1, 40), learns=True)
    assert killed == whole


def test_links_taken_at_a_kill_are_described_after_it(tmp_path):
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    seed(crawl)
    web = Web(crawl, journal)
    web.lease()
    web.book()
    crawl.revision.note("model-1", described=False)
    taken = crawl.revision.take().tolist()
    web.lease()  # while the links wait for the judge
    journal.database.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    journal.close()
    assert resumed.revision.model == "model-1"
    assert resumed.revision.take().tolist() == taken != []


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
    assert {place for _, place in kept} == {0, 2}
    journal.export(*first)
    journal.close()
    journal = Journal.open(tmp_path, {"topic": "food"})
    assert items(journal) == {key: item for key, item in kept.items() if key != first}
    journal.close()


def test_marks_come_back_in_their_order(tmp_path):
    journal, crawl = a_job(tmp_path)
    assert len(marks(journal)) == crawl.pages
    journal.close()


def booked_of(crawl):
    """Return how many samples a crawl has booked."""
    return crawl.pages + crawl.failures.total() + crawl.counts["data_answers"]


def test_resumed_policy_knows_what_pages_said(tmp_path, monkeypatch):
    """Else it would believe all sites until the crawl has grown."""
    order = []
    for kind, name in ((Crawl, "remember"), (TresPolicy, "restore")):
        monkeypatch.setattr(kind, name, lambda _, *args, name=name: order.append((name, args[0])))
    a_job(tmp_path)[0].close()
    journal, resumed = Journal.open(tmp_path, {"topic": "food"}), new_crawl()
    recover(journal, resumed)
    journal.close()
    assert [name for name, _ in order] == ["remember", "restore"]
    assert len(order[0][1]) == resumed.pages > 0


def test_rolled_back_lease_is_rewritten(tmp_path):
    journal, crawl = a_job(tmp_path, steps=5)
    journal.commit()
    journal.database.execute("PRAGMA query_only = ON")
    decision = crawl.next()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        journal.lease(crawl, decision)
    journal.database.execute("PRAGMA query_only = OFF")
    journal.lease(crawl, decision)
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    assert resumed.store.closure.urls == crawl.store.closure.urls
    assert resumed.next().row == decision.row
    journal.close()


def test_full_disk_leaves_what_was_written(tmp_path):
    journal, crawl = a_job(tmp_path, steps=5)
    pages = journal.database.execute("PRAGMA page_count").fetchone()[0]
    journal.database.execute(f"PRAGMA max_page_count = {pages}")
    web, written = Web(crawl, journal), []

    def go_on():
        for _ in range(200):
            written.append(journal.steps)
            web.lease()
            web.book()

    with pytest.raises(sqlite3.OperationalError, match="full"):
        go_on()
    journal.database.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    assert journal.steps == booked_of(resumed) == written[-1]
    journal.close()


def test_crawl_of_one_page_is_resumed(tmp_path):
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, crawl)
    crawl.add_seeds(Outlinks(["http://h1.test/1"], [""], np.zeros((1, 3), dtype=np.float32)))
    web = Web(crawl, journal)
    web.lease()
    web.book()
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    assert state_of(resumed) == state_of(crawl)


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_seeds_keep_their_reward(tmp_path, trusted, changed):
    """An irrelevant seed of the first start keeps its path, even if the setting changes."""
    journal, crawl = Journal.open(tmp_path, {}), new_crawl(trusted_seeds=trusted)
    crawl.add_seeds(Outlinks(["http://h1.test/1"], [""], np.zeros((1, 3), dtype=np.float32)))
    web = Web(crawl, journal)
    for _ in range(2):
        web.lease()
        web.book()
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl(trusted_seeds=trusted != changed)
    recover(journal, resumed)
    assert state_of(resumed) == state_of(crawl)
    last = len(crawl.store) - 1  # an outlink of the second page
    for row in (0, crawl.store["parent"][last]):
        assert resumed.store.path_to(row) == crawl.store.path_to(row)
    assert resumed.store.path_to(0).features == ((1, 1, 1) if trusted else (0, 0, 0))
    assert resumed.store.depth(last) == 2
    assert resumed.outlook.relevant == crawl.outlook.relevant
    journal.close()


def test_echo_earns_nothing_after_a_resume(tmp_path):
    """The outlook counts what pages earn; an echo is relevant."""
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    seed(crawl)
    decision = crawl.next()
    journal.lease(crawl, decision)
    echo = judged(True, known=Known(phrases=20, elsewhere=20, here=0))
    journal.book(crawl, crawl.book(decision.row, echo))
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    journal.close()
    assert resumed.relevant == crawl.relevant == 1
    assert resumed.outlook.relevant == crawl.outlook.relevant == 0


@pytest.fixture(scope="module")
def whole_job(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    a_job(directory)[0].close()
    return directory


@pytest.fixture
def damage(whole_job, tmp_path):
    """Copy the job into `tmp_path` and damage it by a statement."""

    def run(statement):
        copytree(whole_job, tmp_path, dirs_exist_ok=True)
        with sqlite3.connect(tmp_path / NAME) as connection:
            connection.execute(statement)
        connection.close()

    return run


def test_damaged_file_is_opened_or_refused(whole_job, tmp_path):
    good, random, refused = (whole_job / NAME).read_bytes(), Random(1), 0
    for _ in range(100):
        place = random.randrange(len(good) - 64)
        (tmp_path / NAME).write_bytes(good[:place] + random.randbytes(64) + good[place + 64 :])
        try:
            Journal.open(tmp_path, {}).close()
        except TresError:
            refused += 1
    assert refused > 5


def test_damaged_table_is_noticed(whole_job, tmp_path):
    good = (whole_job / NAME).read_bytes()
    (tmp_path / NAME).write_bytes(good[:4096] + bytes(4096) + good[8192:])
    with pytest.raises(TresError, match=r"damaged .*: restore a copy of it, or give another dir"):
        Journal.open(tmp_path, {})


def test_failed_transaction_leaves_journal_usable(tmp_path):
    journal, crawl = a_job(tmp_path, steps=4)
    web = Web(crawl, journal)
    web.lease()
    journal.database.execute("PRAGMA query_only = ON")
    with pytest.raises(sqlite3.Error):
        web.book()
    journal.database.execute("PRAGMA query_only = OFF")
    journal.note("name", "value")
    journal.close()
    Journal.open(tmp_path, {}).close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE batch SET samples = x'00' WHERE number = 1",
        "UPDATE batch SET cues = x'00' WHERE number = 2",
        "UPDATE batch SET cues = x''",
        "UPDATE batch SET cues = CAST(x'00001000' || substr(cues, 5) AS BLOB) WHERE cues <> x''",
        "UPDATE batch SET counts = x'0000' WHERE number = 2",
        "UPDATE batch SET counts = 'none'",
        "UPDATE batch SET counts = CAST(x'ffff' || substr(counts, 3) AS BLOB) WHERE counts <> x''",
        "UPDATE state SET value = x'00' WHERE name = 'links'",
        "UPDATE state SET value = CAST(substr(value, 1, length(value) - 4) || x'0000c07f' AS BLOB)"
        " WHERE name = 'links'",
        "UPDATE state SET value = CAST('{\"seen\": 900' || substr(value, 11) AS BLOB)"
        " WHERE name = 'links'",
        "UPDATE batch SET anchors = '[]' WHERE number = 2",
        "UPDATE batch SET urls = '[1, 2]'",
        "UPDATE batch SET urls = 'none'",
        "UPDATE batch SET urls = replace(urls, 'http:', 'file:')",
        "DELETE FROM batch WHERE number = 3",
        "UPDATE page SET row = 10000 WHERE step = 5",
        "UPDATE page SET row = -1 WHERE step = 5",
        "UPDATE page SET row = 'a' WHERE step = 5",
        "UPDATE page SET url_number = -5",
        "UPDATE page SET host = 99999",
        "UPDATE page SET x = x'0000'",
        "UPDATE page SET first = 100000, outlinks = 5",
        "UPDATE page SET outlinks = -3",
        "UPDATE page SET sampled = -7",
        "UPDATE page SET sampled = 9223372036854775807",
        "UPDATE split SET leaf = 400",
        "UPDATE split SET feature = 9",
        "UPDATE state SET value = x'00' WHERE name = 'agent'",
        "UPDATE state SET value = zeroblob(length(value)) WHERE name = 'random'",
        "UPDATE state SET value = '{}' WHERE name = 'counts'",
        "DELETE FROM state",
        "UPDATE state SET value = '{\"duplicates\": \"many\"}' WHERE name = 'counts of the crawl'",
        "UPDATE state SET value = '[]' WHERE name = 'counts of the crawl'",
        "UPDATE state SET value = 7 WHERE name = 'counts of the crawl'",
        "INSERT OR REPLACE INTO lease VALUES (100000, 0, 0)",
        "INSERT OR REPLACE INTO lease VALUES (9, 1e300, 0)",
        "INSERT INTO redirect VALUES (1, 100000, 0)",
        "INSERT INTO redirect VALUES (1, 9, -1)",
        "INSERT INTO redirect VALUES (1, 9, 'http://a.test/')",
        "INSERT INTO redirect VALUES (1, 9.5, 0)",
        "INSERT OR REPLACE INTO lease VALUES (9, 0, 'high')",
        "UPDATE batch SET urls = replace(urls, '.test/', '.test/\u00e9')",
        "UPDATE batch SET hosts = replace(hosts, 'h0', '\\ud800')",
        "UPDATE batch SET anchors = replace(hex(zeroblob(30000)), '00', '[')",
        "UPDATE batch SET samples = CAST(x'0000c07f' || substr(samples, 5) AS BLOB)"
        " WHERE samples <> x''",
        "UPDATE page SET row = 0.5 WHERE step = 4",
        "DELETE FROM page WHERE step = 2",
        "UPDATE page SET kind = hex(zeroblob(2000000)) WHERE step = 5",
        "UPDATE page SET kind = char(10) WHERE step = 5",
        "UPDATE page SET reward = 1e999",
        "UPDATE page SET reward = 2",
        "UPDATE page SET reward = -1",
        "UPDATE page SET x = CAST(x'0000807f' || substr(x, 5) AS BLOB)",
        "UPDATE split SET leaf = 1e300",
        "UPDATE split SET threshold = zeroblob(2000000)",
        "UPDATE state SET value = 2000000000 WHERE name = 'agent'",
        "UPDATE state SET value = CAST(substr(value, 1, length(value) - 4) || x'000080bf' AS BLOB)"
        " WHERE name = 'agent'",
        "UPDATE state SET value = CAST(x'0000c07f' || substr(value, 5) AS BLOB)"
        " WHERE name = 'agent'",
    ],
)
def test_damage_is_told_in_one_line(tmp_path, damage, statement):
    damage(statement)
    journal = Journal.open(tmp_path, {})
    with pytest.raises(TresError, match="damaged") as error:
        recover(journal, new_crawl())
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 350
    journal.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE meta SET value = hex(zeroblob(2000000)) WHERE name = 'topic'",
        "UPDATE meta SET value = CAST(x'ff0a' AS TEXT) WHERE name = 'topic'",
        "UPDATE meta SET value = '/../../elsewhere' WHERE name = 'started'",
        "UPDATE meta SET value = 5 WHERE name = 'started'",
    ],
)
def test_foreign_job_is_one_line(tmp_path, damage, statement):
    damage(statement)
    with pytest.raises(TresError) as error:
        Journal.open(tmp_path, {"topic": "food"})
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 350 + len(str(tmp_path))


def test_number_for_fingerprint_is_damage(tmp_path, damage):
    damage("UPDATE page SET mark = 2000000000 WHERE step = 3")
    journal = Journal.open(tmp_path, {})
    with pytest.raises(TresError, match="not bytes"):
        marks(journal)
    journal.close()


def redirected_job(directory, *targets):
    """Return the row of a seed that redirects to these URLs, in a job that was killed then."""
    journal, crawl = Journal.open(directory, {}), new_crawl()
    seed(crawl)
    web = Web(crawl, journal)
    web.lease()
    (row,) = web.leased
    for url in targets:
        assert crawl.redirect(row, url)
        journal.redirect(crawl, row)
    journal.database.close()
    return row


def test_redirect_survives_kill(tmp_path):
    """Its target may have been served: it is fetched again, not the URL that was chosen."""
    way = ["http://h1.test/1", "http://h2.test/target"]
    row = redirected_job(tmp_path, *way)
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    store, ledger = resumed.store, resumed.store.ledger
    assert store.url(row) == way[-1]
    assert [store.closure.is_closed(url) for url in store.closure.urls] == [True, True, False]
    assert store.hosts.names[store["host"][row]] == "h2.test"
    assert [ledger._records[name].tolist() for name in ("leased", "held")] == [[0, 0, 0], [0, 0, 1]]
    assert resumed.next().row == row
    assert [ledger._records[name].tolist() for name in ("leased", "held")] == [[0, 0, 1], [0, 0, 0]]
    journal.book(resumed, resumed.book(row, judged(1.0), NO_LINKS))
    assert not journal.database.execute("SELECT * FROM redirect").fetchall()
    journal.close()
    journal, again = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, again)
    assert all(map(again.store.closure.is_closed, store.closure.urls))
    assert again.next() is None
    journal.close()


def test_redirect_of_lost_request_leaves_its_urls(tmp_path):
    """The spider asks for them again."""
    redirected_job(tmp_path, "http://h1.test/1", "http://h2.test/target")
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed, own=())
    assert not any(map(resumed.store.closure.is_closed, resumed.store.closure.urls))
    journal.close()


def test_interrupted_fetch_keeps_its_slot_of_max(tmp_path):
    """Its page may have been served; while its host is away, others must not fill its domain."""
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    urls = [f"http://{name}.h.test/" for name in "abcd"]
    crawl.add_seeds(Outlinks(urls, [""] * 4, np.zeros((4, 3), dtype=np.float32)))
    web = Web(crawl, journal)
    web.lease()
    journal.database.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    row = resumed.next().row
    assert resumed.store.url(row) == urls[0]
    resumed.set_back(row, last=True)
    busy = Availability([resumed.store["host"][row]])
    assert resumed.next(busy) is not None
    assert resumed.next(busy) is not None
    assert resumed.next(busy) is None, "MAX is 3"
    assert resumed.next().row == row
    journal.close()


def test_dropped_fetch_frees_its_slot_of_max(tmp_path):
    """Otherwise the links of its domain would wait forever."""
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    urls = [f"http://{name}.h.test/" for name in "abcd"]
    crawl.add_seeds(Outlinks(urls, [""] * 4, np.zeros((4, 3), dtype=np.float32)))
    web = Web(crawl, journal)
    web.lease()
    journal.database.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    resumed.store.hosts.give_up(resumed.store["host"][0])
    assert len(list(iter(resumed.next, None))) == 3
    journal.close()


def test_seed_of_full_domain_is_dropped_once(tmp_path):
    """It was subtracted from the frontier at the recovery, and again when it was chosen."""
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    urls = [f"http://h0.test/{number}" for number in (0, 3, 5, 8, 10)]
    crawl.add_seeds(Outlinks(urls, [""] * len(urls), np.zeros((len(urls), 3), dtype=np.float32)))
    web = Web(crawl, journal)
    for _ in range(3):  # MAX
        web.lease()
        web.book()
    journal.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    assert not resumed.store.seeds().tolist()
    pending = len(resumed.store.pending_rows())
    assert pending
    for _ in range(3):
        assert resumed.next() is not None
    assert resumed.store.pending == len(resumed.store.pending_rows()) == pending - 3
    journal.close()


def test_lost_request_is_dropped_after_lease(tmp_path):
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


def test_seeds_and_notes_are_written_at_once(tmp_path):
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    seed(crawl)
    journal.save(crawl)
    for value in ("5", "5_2"):
        journal.note("max", value)
    journal.database.close()  # the kill
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, crawl)
    assert (journal.noted("max"), journal.noted("min")) == ("5_2", None)
    assert crawl.store.url(crawl.next().row) == "http://h0.test/0"
    journal.close()


def job_of(directory, cap):
    """Start the job of a crawl with a MAX; return the recovered crawl."""
    job = Job(Journal.open(directory, {}, now()), SimpleNamespace(), print, cap)
    crawl = new_crawl(limit=None)
    crawl.store.ledger.cap = cap
    job.recover(crawl, ())
    return job, crawl


def test_changed_max_survives_resume(tmp_path):
    """Each pair is a start of the crawl: the given MAX and the MAX in force."""
    job, _ = job_of(tmp_path, Cap(2, 2))
    assert job.note_cap(Cap(4, 4))
    job.engine_stopped()
    for asked, holds in ((2, 4), (2, 4), (5, 5), (2, 2)):
        job, crawl = job_of(tmp_path, Cap(asked, asked))
        assert crawl.store.ledger.cap == Cap(holds, holds)
        job.engine_stopped()


def test_changed_max_may_be_none(tmp_path):
    job, _ = job_of(tmp_path, Cap(2, 2))
    job.note_cap(None)
    assert job_of_another_start(job, tmp_path).store.ledger.cap is None
    job, _ = job_of(tmp_path, Cap(2, 2))
    job.note_cap(Cap(5, 2))
    with pytest.raises(ConfigError, match=r"^JOBDIR: MAX 5_2 depends on the pages done: add -a"):
        job_of_another_start(job, tmp_path)


def job_of_another_start(job, directory):
    job.engine_stopped()
    job, crawl = job_of(directory, Cap(2, 2))
    job.engine_stopped()
    return crawl


@pytest.mark.parametrize("text", ["", "5", '["2"]', '["2", "x"]', '["2", 7]', "{}"])
def test_damaged_max_is_one_line(tmp_path, text):
    journal = Journal.open(tmp_path, {}, now())
    journal.note("max_per_domain", text)
    journal.close()
    with pytest.raises(TresError, match=r"^the crawl in JOBDIR is damaged \("):
        job_of(tmp_path, Cap(2, 2))


def test_redirects_are_written_once(tmp_path):
    journal, crawl = a_job(tmp_path)
    web, query = Web(crawl, journal), "SELECT rowid, value FROM state WHERE name LIKE 'URLs that%'"
    before = dict(journal.database.execute(query))
    for _ in range(30):
        web.lease()
        web.book()
    after = dict(journal.database.execute(query))
    journal.close()
    assert before.items() < after.items()
    assert b"".join(after.values()) == crawl.store.closure.passed.tobytes()


def test_given_up_hosts_survive_resume(tmp_path):
    """They may be fetched from again, and the next crawl knows which they are."""
    for names in ([], ["h0.test"], ["h0.test", "h1.test"]):
        journal, crawl = Journal.open(tmp_path, {}), new_crawl("plain")
        recover(journal, crawl)
        assert [crawl.store.hosts.names[host] for host in crawl.store.hosts.ever_given_up] == names
        rows = crawl.store.pending_rows()
        assert Eligibility.DEAD not in crawl.store.eligibility(rows)
        url = f"http://h{len(names)}.test/0"
        crawl.add_seeds(Outlinks([url], [""], np.zeros((1, 3), dtype=np.float32)))
        crawl.store.hosts.give_up(crawl.store.hosts.find(f"h{len(names)}.test"))
        crawl.store.admission.refused["max_rests"] += 2
        journal.save(crawl)
        journal.close()
    assert crawl.store.admission.refused["max_rests"] == 2 * 3


@pytest.mark.parametrize("draw", [3, 1022, 1023, 1050])  # the last three failed once
def test_resumed_crawl_learns_again_what_earlier_pages_say(tmp_path, draw):
    """As the crawl does that was not killed: lessons, features, siblings and hosts are the same."""
    random = np.random.default_rng(draw)
    marks = [random.bytes(SKETCH) for _ in range(30)]
    journal, crawl = Journal.open(tmp_path, {}), new_crawl()
    seed(crawl, range(3))
    for number in range(30):
        if (decision := crawl.next()) is None:
            break
        journal.lease(crawl, decision)
        if number % 7 == 3 and crawl.redirect(decision.row, f"http://q{number}.test/"):
            journal.redirect(crawl, decision.row)
        mark = marks[number] if number % 6 else marks[max(0, number - 3)]  # some are copies
        again = {each.hex(): float(random.random()) for each in marks[:number]}
        page = judged(False, mark=mark, model=f"model-{number // 8}")
        page = page._replace(probability=float(random.random()))
        page = crawl.decide(decision.row, page._replace(again=again if number == 20 else {}))
        urls = [f"http://h{random.integers(9)}.test/{decision.row}/{i}" for i in range(4)]
        links = Outlinks(urls, [""] * 4, random.random((4, 3), dtype=np.float32))
        journal.book(crawl, crawl.book(decision.row, page, links))
    journal.database.close()
    journal, resumed = Journal.open(tmp_path, {}), new_crawl()
    recover(journal, resumed)
    journal.close()
    assert resumed.revision.asks()
    again = {each.hex(): float(random.random()) for each in marks}
    waiting, learned = resumed.store.pending_rows(), []
    dropped = np.setdiff1d(crawl.store.pending_rows(), waiting)  # as soon as it is resumed
    assert (crawl.store.eligibility(dropped) == Eligibility.DEAD).all()
    for each in (crawl, resumed):
        each.relearn(again)
        learner = each.policy.link_learner
        hosts = each.store["host"].take(waiting)
        learned.append(
            (
                each.store.features(waiting)[:, :STATIC],
                learner._lessons["reward"],
                learner._siblings(waiting),
                learner._hosts.logits(hosts),
                learner._hosts.beliefs(hosts),
            )
        )
    assert len(learned[0][1]) > 5
    for found, expected in zip(*learned, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)
