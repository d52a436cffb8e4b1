import numpy as np
import pytest
from judged import judged

from tres_scrapy.agent.policy import Decision, Policy
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.frontier.feature import NEIGHBOURHOOD
from tres_scrapy.frontier.ledger import ANY_HOST, Availability, DomainLedger
from tres_scrapy.frontier.store import SampleStore, State

A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"


class Queue(Policy):
    """A policy that takes samples in order and records its calls."""

    def __init__(self, store):
        self.store = store
        self.rows = []
        self.told = []

    def observe(self, experience):
        visits = self.store.ledger.features(np.array([self.store["domain"][experience.row]]))
        self.told.append(("observe", experience.row, experience.reward, float(visits[0, 0])))

    def expand(self, experience, outlinks, page):
        state = self.store["state"][experience.row]
        self.told.append(("expand", experience.row, outlinks.tolist(), state))
        self.rows.extend(outlinks.tolist())

    def readmit(self, rows):
        self.rows.extend(rows.tolist())

    def learn(self):
        self.told.append(("learn",))
        return 0.5

    def select(self, available=ANY_HOST):
        self.told.append(("select",))
        return Decision(self.rows.pop(0), 0, None) if self.rows else None

    def figures(self):
        return {"own": 1}


def crawl_of(*seeds, limit=None, cap=None, inlinks=False, **options):
    store = SampleStore(DomainLedger(cap, inlinks=inlinks))
    crawl = Crawl(store, Queue(store), limit, **options)
    crawl.add_seeds(Outlinks(seeds, [""] * len(seeds), np.zeros((len(seeds), 3), dtype=np.float32)))
    return crawl


def book(crawl, row, reward, *urls):
    actions = np.zeros((len(urls), 3), dtype=np.float32)
    return crawl.book(row, judged(reward), Outlinks(urls, urls, actions)).outlinks


def test_order_of_algorithm_3():
    """Experience into the tree, ledger, DONE, outlinks into the frontier, learn, then sample."""
    crawl = crawl_of(A)
    row = crawl.next().row
    (outlink,) = book(crawl, row, 1.0, B)
    assert crawl.next().row == outlink
    unvisited = 0.5
    assert crawl.policy.told == [
        ("observe", row, 1.0, unvisited),
        ("expand", row, [outlink], State.DONE),
        ("learn",),
        ("select",),
    ]
    assert crawl.loss == 0.5


def test_booking_keeps_choice_and_url():
    crawl = crawl_of(A, B)
    decision = crawl.next()
    assert crawl.redirect(decision.row, C)
    booking = crawl.book(decision.row, judged(1.0), NO_LINKS)
    assert (booking.decision, booking.decision.url) == (decision, A)
    failure = crawl.book(crawl.next().row, Failure("kind"))
    assert (failure.decision.url, failure.kind) == (B, "kind")


def test_seeds_come_first():
    crawl = crawl_of(A, B)
    book(crawl, crawl.next().row, 0.0, C)
    assert crawl.store.url(crawl.next().row) == B


@pytest.mark.parametrize(
    ("relevant", "trusted", "reward"), [(0, False, 0), (1, False, 1), (0, True, 1), (1, True, 1)]
)
def test_seed_earns_what_it_is_worth(relevant, trusted, reward):
    """A trusted seed earns 1, as in the paper; the harvest rate counts its verdict."""
    crawl = crawl_of(A, inlinks=True, trusted_seeds=trusted)
    seed = crawl.next().row
    outlinks = book(crawl, seed, relevant, B)
    assert crawl.policy.told[0][:3] == ("observe", seed, reward)
    x = crawl.store.features(outlinks)[0]
    assert x[:3].tolist() == [reward] * 3
    assert x[6] == reward / 2, "feature 7 of a new domain, which one page links to"
    assert (crawl.pages, crawl.relevant, crawl.harvest_rate) == (1, relevant, relevant)


def test_trust_ends_after_the_seed():
    crawl = crawl_of(A, trusted_seeds=True)
    book(crawl, crawl.next().row, 0.0, B)
    outlinks = book(crawl, crawl.next().row, 0.0, C)
    assert crawl.policy.told[4][:3] == ("observe", 1, 0.0)
    assert crawl.store.features(outlinks)[0, :3].tolist() == [0, 1 / 2, 1 / 2]


def test_experience_keeps_features_of_choice():
    crawl = crawl_of(A)
    seen = []
    crawl.policy.observe = seen.append
    row = crawl.next().row
    crawl.store.ledger.book_page(crawl.store["domain"][row], 0.0)  # another fetch of a.test
    book(crawl, row, 1.0)
    assert seen[0].x[NEIGHBOURHOOD].tolist() == [0.5, 0.5]


def test_limit_counts_pages_not_failures():
    crawl = crawl_of(A, B, C, limit=2)
    first, second = crawl.next().row, crawl.next().row
    assert crawl.next() is None
    crawl.book(first, Failure("http_404"))
    third = crawl.next().row
    book(crawl, second, 1.0)
    book(crawl, third, 0.0)
    assert crawl.finished
    assert (crawl.pages, crawl.harvest_rate) == (2, 0.5)
    assert crawl.failures == {"http_404": 1}


def test_failure_earns_nothing():
    crawl = crawl_of(A)
    row = crawl.next().row
    crawl.book(row, Failure("DNSLookupError"))
    assert crawl.policy.told[:2] == [
        ("observe", row, 0.0, 0.5),
        ("expand", row, [], State.DONE),
    ]
    assert crawl.next() is None


def test_a_url_is_fetched_once():
    crawl = crawl_of(A)
    row = crawl.next().row
    book(crawl, row, 1.0, A, B, C)
    urls = [crawl.store.url(i) for i in range(1, len(crawl.store))]
    assert urls == [B, C]


def test_redirect_is_booked_where_it_ends():
    crawl = crawl_of(A)
    row = crawl.next().row
    assert crawl.redirect(row, B)
    book(crawl, row, 1.0, B, C)
    ledger = crawl.store.ledger
    known = ledger.features(np.array([ledger.id_of("a.test"), ledger.id_of("b.test")]))
    assert known[:, 1].tolist() == [0.5, 1.0]
    assert crawl.store.trail(row) == [B]
    assert len(crawl.store) == 2, "the target of a redirect is closed"


def test_redirect_to_closed_url_is_refused():
    crawl = crawl_of(A, B)
    row = crawl.next().row
    crawl.next()
    assert not crawl.redirect(row, B)


@pytest.mark.parametrize("allowed", [True, False])
def test_redirect_into_full_domain_is_refused(allowed):
    crawl = crawl_of(A, B, cap=Cap(2 if allowed else 1, 1))
    row = crawl.next().row
    book(crawl, crawl.next().row, 1.0)
    assert crawl.redirect(row, "http://b.test/2") is allowed


def test_raised_max_returns_seed_first():
    crawl = crawl_of(A, A + "2", cap=Cap(1, 1))
    book(crawl, crawl.next().row, 1.0, B)
    assert crawl.store.url(crawl.next().row) == B
    assert crawl.next() is None
    assert [crawl.store.url(row) for row in crawl.change_cap(Cap(2, 2)).tolist()] == [A + "2"]
    assert crawl.next().row == 1
    assert crawl.next() is None


def test_raised_max_returns_only_dropped_links():
    crawl = crawl_of(A, B, cap=Cap(1, 1))
    ledger = crawl.store.ledger
    for _ in range(ledger.limits.failures):
        ledger.book_failure(ledger.id_of("b.test"))  # it is abandoned
    crawl.store.drop(book(crawl, crawl.next().row, 1.0, C))  # for a reason that its policy has
    crawl.policy.rows.clear()
    assert crawl.next() is None
    assert not len(crawl.change_cap(None))


def test_lost_requests_stay_dropped():
    crawl = crawl_of(A, A + "2", A + "3", cap=Cap(1, 1))
    book(crawl, crawl.next().row, 1.0)
    assert crawl.next() is None
    assert crawl.change_cap(None, own={2}).tolist() == [2]


def test_seed_of_a_busy_host_waits():
    crawl = crawl_of(A, B)
    busy = Availability([crawl.store.hosts.names.index("a.test")])
    assert crawl.store.url(crawl.next(busy).row) == B
    assert crawl.next(busy) is None
    assert crawl.store.url(crawl.next().row) == A


def test_busy_seeds_are_not_rescanned(monkeypatch):
    crawl = crawl_of(*(f"http://a.test/{number}" for number in range(50)), B)
    looked_at, eligibility = [], crawl.store.eligibility

    def spy(rows, available=ANY_HOST):
        looked_at.extend(rows.tolist())
        return eligibility(rows, available)

    monkeypatch.setattr(crawl.store, "eligibility", spy)
    busy = Availability([crawl.store.hosts.names.index("a.test")])
    assert crawl.store.url(crawl.next(busy).row) == B
    assert [crawl.next(busy) for _ in range(5)] == [None] * 5
    assert len(looked_at) == 51
    assert [crawl.next().row for _ in range(50)] == list(range(50))
    assert len(looked_at) == 101


def test_figures_name_what_is_worth_watching():
    crawl = crawl_of(A)
    book(crawl, crawl.next().row, 1.0, B, C)
    crawl.book(crawl.next().row, Failure("timeout"))
    assert crawl.figures() == {
        "pages": 1,
        "relevant_pages": 1,
        "harvest_rate": 1.0,
        "relevant_domains": 1,
        "frontier_size": 1,
        "failures/timeout": 1,
        "links_left_out": 0,
        "domains_given_up": 0,
        "hosts_given_up": 0,
        "q_loss": 0.5,
        "own": 1,
    }


def test_late_links_are_outlinks_of_seed():
    crawl = crawl_of(A)
    seed = crawl.next().row
    book(crawl, seed, 1.0)
    rows = crawl.add_outlinks(
        seed, Outlinks([B, A], ["b", "a"], np.zeros((2, 3), dtype=np.float32))
    )
    assert [crawl.store.url(row) for row in rows.tolist()] == [B]
    assert crawl.policy.told[-1] == ("expand", seed, rows.tolist(), State.DONE)
    assert crawl.store.trail(crawl.next().row) == [A, B]


def test_answers_of_search_box_count_as_relevant():
    """The page with the box need not be relevant: its own links have another path."""
    crawl, seen = crawl_of(A, inlinks=True), []
    seed = crawl.next().row
    (link,) = book(crawl, seed, 0.0, B).tolist()
    crawl.policy.expand = lambda experience, rows, page: seen.append(experience.reward)
    links = Outlinks([C], ["c"], np.zeros((1, 3), dtype=np.float32))
    (answer,) = crawl.add_outlinks(seed, links).tolist()
    assert seen == [0.0], "the experience is that of the seed"
    x = crawl.store.features(np.array([link, answer]))
    assert x[:, :3].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert x[:, 6].tolist() == [0, 1 / 2]
    assert [crawl.store.depth(row) for row in (link, answer)] == [1, 1]
    after = [crawl.store.path_after(row, 0.0).features for row in (link, answer)]
    assert after == [(0, 0, 0), (0, 1 / 2, 1 / 2)]


def test_patient_crawl_starts_slowly():
    """It has one fetch more under way for every ten pages seen; its seeds do not wait."""
    crawl, patient = crawl_of(A, B), Availability(patient=True)
    for _ in (A, B):
        assert crawl.next(patient) is not None
    book(crawl, 0, 1.0, *(f"http://{i}.test/" for i in range(40)))
    assert crawl.next(patient) is None  # the other seed is under way
    assert crawl.waits
    book(crawl, 1, 0.0)
    for pages in range(2, 31):
        while (decision := crawl.next(patient)) is not None:
            last = decision.row
        assert crawl.waits
        assert crawl.leased == pages // 10 + 1
        book(crawl, last, 0.0)
    assert crawl.next(ANY_HOST) is not None
    assert not crawl.waits
