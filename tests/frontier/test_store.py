from itertools import pairwise

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tres_scrapy.config.limit import Cap, FrontierLimits
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.frontier.ledger import Availability, DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, TRAIL, Eligibility, SampleStore, State
from tres_scrapy.links.code import RaggedArray
from tres_scrapy.url.canonical import registrable_domain

CAP = 3
LIMITS = FrontierLimits(pending=12, pending_per_domain=7, failures=2)
HOSTS = ["a.x.test", "b.x.test", "y.test"]
URLS = st.builds("http://{}/{}".format, st.sampled_from(HOSTS), st.integers(0, 4))
CODES = st.lists(st.integers(0, 2**32 - 1), max_size=3)
LINKS = st.lists(st.tuples(URLS, CODES), max_size=5)


def host_of(url):
    return url.split("/")[2]


class StoreEqualsDictionaries(RuleBasedStateMachine):
    """The column store, compared with one dictionary per row and plain loops."""

    def __init__(self):
        super().__init__()
        self.store = SampleStore(DomainLedger(Cap(CAP, CAP), inlinks=True, limits=LIMITS))
        self.rows = []
        self.left_out = 0
        self.closed = set()
        self.lost = []  # rows that the store has reported as dropped
        self.store.on_drop = lambda rows: self.lost.extend(rows.tolist())
        self.passing = {}  # the last row that was redirected there
        self.known, self.gone = set(), set()  # hosts that have answered, that are given up
        self.held = set()  # rows that keep their slot of MAX while they wait
        self.links = {}  # (from, to): the reward of a domain's first page with a link to another
        self.pages = []  # (domain, reward); reward None: a visit without a page

    def count(self, domain):
        rewards = [reward for name, reward in self.pages if name == domain]
        return {
            "visits": len(rewards),
            "pages": sum(reward is not None for reward in rewards),
            "relevant": sum(reward == 1 for reward in rewards),
            "leased": sum(
                row["state"] == State.LEASED and row["domain"] == domain for row in self.rows
            ),
            "held": sum(
                self.rows[i]["state"] == State.PENDING and self.rows[i]["domain"] == domain
                for i in self.held
            ),
        }

    def is_given_up(self, domain):
        """Return whether a domain has ever failed too often in a row."""
        rewards = [reward for name, reward in self.pages if name == domain]
        return (None, None) in pairwise(rewards)

    def is_exhausted(self, domain):
        """Return whether a domain has MAX pages or was abandoned."""
        return self.count(domain)["pages"] >= CAP or self.is_given_up(domain)

    def share(self, domain):
        """Feature 7 of a domain never visited."""
        rewards = [reward for (_, to), reward in self.links.items() if to == domain]
        return sum(rewards) / (len(rewards) + 1) if rewards else 0.5

    def with_state(self, state):
        return [i for i, row in enumerate(self.rows) if row["state"] == state]

    def eligibility(self, number, busy=(), *, only_known=False):
        row = self.rows[number]
        count = self.count(row["domain"])
        if row["url"] in self.closed or self.is_exhausted(row["domain"]):
            return Eligibility.DEAD
        if row["host"] in self.gone:
            return Eligibility.DEAD
        is_full = count["pages"] + count["leased"] + count["held"] >= CAP
        if row["host"] in busy or (is_full and number not in self.held):
            return Eligibility.BUSY
        if only_known and row["host"] not in self.known:
            return Eligibility.BUSY
        return Eligibility.READY

    def add_outlinks(self, parent, links, path):
        urls = [url for url, _ in links]
        actions = np.arange(3 * len(urls), dtype=np.float32).reshape(-1, 3)
        cues = RaggedArray.of([codes for _, codes in links]) if parent != NO_PARENT else None
        first = len(self.rows)
        rows = self.store.add(parent, Outlinks(urls, urls, actions, cues))
        alive = [
            (url, codes if cues is not None else [], action)
            for (url, codes), action in zip(links, actions, strict=True)
            if url not in self.closed
        ]
        room = max(0, LIMITS.pending - len(self.with_state(State.PENDING)))
        self.left_out += len(alive[room:])
        for url, codes, action in alive[:room]:
            domain = registrable_domain(host_of(url))
            if self.is_exhausted(domain) or host_of(url) in self.gone:
                continue
            waiting = [self.rows[i]["domain"] for i in self.with_state(State.PENDING)]
            if waiting.count(domain) >= LIMITS.pending_per_domain:
                self.left_out += 1
                continue
            self.rows.append(
                {"url": url, "host": host_of(url), "domain": domain, "state": State.PENDING}
                | {"static": [*path, *action], "parent": parent, "cues": codes, "rated": 0}
            )
            if parent != NO_PARENT and domain != self.rows[parent]["domain"]:
                link = self.rows[parent]["domain"], domain
                self.links.setdefault(link, self.rows[parent]["reward"])
        assert rows.tolist() == list(range(first, len(self.rows)))
        assert self.store.admission.left_out == self.left_out

    @rule(links=LINKS)
    def add_seeds(self, links):
        self.add_outlinks(NO_PARENT, links, [0, 0, 0])

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), link=st.sampled_from([0, 0.25, 1]))
    def rate(self, data, link):
        numbers = data.draw(st.lists(st.integers(0, len(self.rows) - 1), max_size=4, unique=True))
        rows = np.array(numbers, dtype=np.int64)
        self.store["probability"][rows] = np.full(len(rows), link)
        for number in numbers:
            self.rows[number]["rated"] = link

    @precondition(lambda self: self.with_state(State.PENDING))
    @rule(data=st.data())
    def lease(self, data):
        number = data.draw(st.sampled_from(self.with_state(State.PENDING)))
        if self.eligibility(number) != Eligibility.READY:
            return
        self.store.lease(number)
        self.rows[number]["state"] = State.LEASED
        self.closed.add(self.rows[number]["url"])

    @precondition(lambda self: self.with_state(State.PENDING))
    @rule(data=st.data())
    def drop(self, data):
        number = data.draw(st.sampled_from(self.with_state(State.PENDING)))
        row, before = self.rows[number], len(self.lost)
        self.store.drop(np.array([number]))
        row["state"] = State.DONE
        self.held.discard(number)
        is_lost = row["url"] in self.closed or self.is_given_up(row["domain"])
        assert self.lost[before:] == [number] * is_lost

    @precondition(lambda self: self.store.hosts.names)
    @rule(data=st.data(), answers=st.booleans())
    def hear(self, data, answers):
        number = data.draw(st.integers(0, len(self.store.hosts.names) - 1))
        hosts = self.store.hosts
        (hosts.mark_known if answers else hosts.give_up)(number)
        (self.known if answers else self.gone).add(self.store.hosts.names[number])

    @precondition(lambda self: self.with_state(State.LEASED))
    @rule(data=st.data())
    def set_back(self, data):
        number = data.draw(st.sampled_from(self.with_state(State.LEASED)))
        url = self.rows[number]["url"]
        alike = [i for i, row in enumerate(self.rows) if row["url"] == url and i != number]
        if url in self.passing or any(self.rows[i]["state"] != State.PENDING for i in alike):
            return  # a crawl does not redirect to what is closed
        self.store.release(number)
        self.rows[number]["state"] = State.PENDING
        self.closed.discard(url)

    @precondition(lambda self: self.with_state(State.PENDING))
    @rule(data=st.data())
    def hold(self, data):
        number = data.draw(st.sampled_from(self.with_state(State.PENDING)))
        if number not in self.held:
            self.store.hold([number])
            self.held.add(number)

    @precondition(lambda self: self.with_state(State.LEASED))
    @rule(data=st.data(), url=URLS)
    def redirect(self, data, url):
        number = data.draw(st.sampled_from(self.with_state(State.LEASED)))
        self.store.redirect(number, url)
        self.closed.add(url)
        self.passing[url] = number
        self.rows[number] |= {"url": url}
        self.rows[number] |= {"host": host_of(url), "domain": registrable_domain(host_of(url))}

    @precondition(lambda self: self.with_state(State.LEASED))
    @rule(data=st.data(), reward=st.sampled_from([0, 1, None]), links=LINKS)
    def finish(self, data, reward, links):
        number = data.draw(st.sampled_from(self.with_state(State.LEASED)))
        row = self.rows[number]
        self.pages.append((row["domain"], reward))
        row["state"] = State.DONE
        self.held.discard(number)
        self.passing = {url: by for url, by in self.passing.items() if by != number}
        domain = self.store["domain"][number]
        if reward is None:
            self.store.ledger.book_failure(domain)
            self.store.finish(number)
            return
        self.store.ledger.book_page(domain, reward)
        self.store.finish(number, self.store.path_after(number, reward))
        row["reward"] = reward
        self.add_outlinks(number, links, self.state_features(number))

    def state_features(self, number):
        """Features 1 to 3, by walking the path."""
        rewards = []
        while number != NO_PARENT:
            rewards.append(self.rows[number]["reward"])
            number = self.rows[number]["parent"]
        closeness = 1 / (rewards.index(1) + 1) if 1 in rewards else 0
        return [rewards[0], closeness, sum(rewards) / len(rewards)]

    @invariant()
    def every_row_is_the_same(self):
        numbers = np.arange(len(self.rows))
        assert len(self.store) == len(self.rows)
        assert [self.store.url(i) for i in numbers] == [row["url"] for row in self.rows]
        assert [self.store["state"][i] for i in numbers] == [row["state"] for row in self.rows]
        assert self.store.pending == len(self.with_state(State.PENDING))
        expected = []
        for row in self.rows:
            count = self.count(row["domain"])
            known = count["visits"] > 0
            ratio = count["relevant"] / count["visits"] if known else self.share(row["domain"])
            eighth = 1 if known or count["leased"] else 0.5
            expected.append([*row["static"], ratio, eighth, row["rated"]])
        np.testing.assert_allclose(
            self.store.features(numbers),
            np.array(expected).reshape(-1, len(FEATURES)),
            rtol=1e-6,
        )

    @invariant()
    def the_same_is_known_of_links(self):
        store, rows = self.store, np.arange(len(self.rows))[::-1]
        said = store.cues.take(rows)
        assert said.codes.tolist() == [code for i in rows for code in self.rows[i]["cues"]]
        assert said.counts.tolist() == [len(self.rows[i]["cues"]) for i in rows]
        assert store["probability"].take(rows).tolist() == [self.rows[i]["rated"] for i in rows]
        assert store["parent"].take(rows).tolist() == [self.rows[i]["parent"] for i in rows]

    @invariant()
    def the_same_domains_are_counted(self):
        relevant = {domain for domain, reward in self.pages if reward == 1}
        given_up = {domain for domain, _ in self.pages if self.is_given_up(domain)}
        ledger = self.store.ledger
        assert (ledger.relevant_domains, ledger.domains_given_up) == (len(relevant), len(given_up))

    @invariant()
    def the_same_rows_can_be_taken(self):
        numbers = np.array(self.with_state(State.PENDING), dtype=np.int64)
        for names in ([], ["a.x.test"], ["b.x.test", "y.test"]):
            busy = [
                self.store.hosts.names.index(name)
                for name in names
                if name in self.store.hosts.names
            ]
            found = self.store.eligibility(numbers, Availability(busy))
            assert found.tolist() == [self.eligibility(i, names) for i in numbers]
            elsewhere = [i for i in numbers if self.rows[i]["host"] not in names]
            assert self.store.may_be_ready(Availability(busy)) == bool(elsewhere)
            available = Availability(busy, only_known=True)
            found = self.store.eligibility(numbers, available).tolist()
            expected = [self.eligibility(i, names, only_known=True) for i in numbers]
            assert found == expected
            known = [i for i in elsewhere if self.rows[i]["host"] in self.known]
            assert self.store.may_be_ready(available) == bool(known)


TestStoreEqualsDictionaries = StoreEqualsDictionaries.TestCase


def test_rejected_row_leaves_no_trace():
    store = SampleStore(DomainLedger(limits=FrontierLimits(pending=3, pending_per_domain=2)))
    urls = [f"http://{host}.test/" for host in ("a.x", "b.x", "c.x", "y", "z")]
    rows = store.add(NO_PARENT, Outlinks(urls, urls, np.zeros((5, 3), dtype=np.float32)))
    assert [store.url(row) for row in rows] == ["http://a.x.test/", "http://b.x.test/"]
    assert store.admission.left_out == 3
    assert (store.closure.urls, store.hosts.names) == (urls[:2], ["a.x.test", "b.x.test"])


def test_refused_url_counts_once_if_it_waits():
    store = SampleStore(DomainLedger(Cap(1, 1)))
    zeros = np.zeros((2, 3), dtype=np.float32)
    urls = ["http://a.test/0", "http://a.test/1"]
    store.add(NO_PARENT, Outlinks(urls, urls, zeros))
    store.lease(0)
    store.ledger.book_page(store["domain"][0], 1.0)
    store.finish(0, store.path_after(0, 1.0))
    late = ["http://a.test/1", "http://a.test/2"]  # found again, and found too late
    assert not len(store.add(0, Outlinks(late, late, zeros)))
    assert store.admission.refusals(store) == {"max_per_domain": 2}


def test_dropped_rows_that_max_may_bring_back_are_not_lost():
    store, lost = SampleStore(DomainLedger(Cap(1, 1))), []
    store.on_drop = lambda rows: lost.extend(rows.tolist())
    urls = [f"http://a.test/{i}" for i in (0, 0, 1)]
    rows = store.add(NO_PARENT, Outlinks(urls, urls, np.zeros((3, 3), dtype=np.float32)))
    store.lease(0)
    store.ledger.book_page(store["domain"][0], 1.0)
    store.drop(rows[1:])
    assert lost == [1]
    store.ledger.cap = None
    assert store.readmit(np.array([True])).tolist() == [2]


def chain_of(urls):
    store, row = SampleStore(DomainLedger()), NO_PARENT
    for url in urls:
        (row,) = store.add(row, Outlinks([url], [""], np.zeros((1, 3), dtype=np.float32)))
        store.lease(row)
        store.finish(row, store.path_after(row, 0.0))
    return store, row


def test_trail_leads_from_the_seed():
    urls = ["http://a.test/", "http://a.test/b", "http://c.test/"]
    store, row = chain_of(urls)
    assert store.trail(row) == urls
    assert [store.depth(row) for row in range(3)] == [0, 1, 2]


def test_long_trail_shows_last_pages():
    urls = [f"http://a.test/{i}" for i in range(TRAIL + 20)]
    store, row = chain_of(urls)
    assert store.trail(row) == urls[20:]
    assert store.depth(row) == TRAIL + 19
