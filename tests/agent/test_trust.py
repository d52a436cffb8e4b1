from collections import Counter, deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tres_scrapy.agent.trust import (
    CREDIT,
    CREDIT_TOGETHER,
    DAMPING,
    ENOUGH,
    EXPECTED,
    FEW,
    FREE,
    LAST,
    LEAST,
    PASSES,
    PRICE,
    Trust,
    excess_of,
    staleness_of,
    trust_of,
)
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.body import Bodies
from tres_scrapy.frontier.feature import SEED_PATH
from tres_scrapy.frontier.ledger import DomainLedger, Said
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.page.copies import NOTHING, Known

DOMAINS = 8
STALE = Known(64, 0, 64)


@st.composite
def crawls(draw):
    """What the pages of each domain say, by which domain each was found, and links."""
    pages = draw(st.lists(st.integers(0, 60), min_size=DOMAINS, max_size=DOMAINS))
    stale = [draw(st.integers(0, count)) for count in pages]
    random = np.random.default_rng(draw(st.integers(0, 99)))
    domains = random.permutation(np.repeat(np.arange(DOMAINS), pages))
    words = random.integers(5, 48, len(domains))
    new = random.random(DOMAINS)[domains] * draw(st.sampled_from([0.1, 2, 5]))
    again = random.choice([0, 0.05, 1, 2], DOMAINS)[domains]  # some only invent
    spread = np.repeat(np.arange(len(domains)), random.poisson(new * again))
    firsts = (domains[spread] + random.integers(1, DOMAINS, len(spread))) % DOMAINS
    firsts_said = random.poisson(new)
    said = (pages, pages, stale, domains, words, firsts_said, firsts, spread)
    said = Said(*(np.array(each, "i4") for each in said))
    finders = [NO_PARENT, *(draw(st.integers(NO_PARENT, n - 1)) for n in range(1, DOMAINS))]
    number = st.integers(0, DOMAINS - 1)
    links = draw(st.sets(st.tuples(number, number).filter(lambda pair: pair[0] != pair[1])))
    links |= {(by, domain) for domain, by in enumerate(finders) if by != NO_PARENT}
    both = np.array(sorted(links), dtype=np.int64).reshape(-1, 2).T
    found_by = np.array(finders)
    return said, Bodies(found_by, both, np.flatnonzero(found_by == NO_PARENT), few=0)


def slow_trust(is_seed, links):
    """The fixed point, from the whole matrix."""
    count, given_out = len(is_seed), is_seed / is_seed.sum()
    passed = np.zeros((count, count))
    for source, target in links.T.tolist():
        passed[target, source] = 1 / np.sum(links[0] == source)
    passed[:, ~np.isin(np.arange(count), links[0])] = given_out[:, None]
    fixed = np.eye(count) - DAMPING * passed
    return np.linalg.solve(fixed, (1 - DAMPING) * given_out)


@given(crawls())
def test_trust_is_the_walk_from_the_seeds(crawl):
    _, bodies = crawl
    is_seed = np.isin(np.arange(DOMAINS), bodies.seeds)
    trust = trust_of(is_seed, bodies.links, bodies.degrees)
    assert trust.sum() == pytest.approx(1)
    assert np.abs(trust - slow_trust(is_seed, bodies.links)).sum() < 2 * DAMPING**20


def slow_staleness(said, bodies):
    """How little new each body says, page by page."""
    domains, words, new = said.domains.tolist(), said.words.tolist(), said.new.tolist()
    repeats = Counter(said.spread.tolist())
    spread = [(f, domains[page]) for f, page in zip(said.firsts, said.spread, strict=True)]

    def lacking(kind, inside, counted):
        has, found, among, parts = kind
        expected = 0.0
        for others in counted:
            last, awaited = deque(maxlen=LAST), 0.0
            for page, (domain, many) in enumerate(zip(domains, among, strict=True)):
                if domain in inside:
                    rate = sum(n for n, _ in last) / max(1, sum(w for _, w in last))
                    awaited += many * min(1, rate)
                if domain in others:
                    last.append((found[page], many))
            expected = max(expected, awaited)
        return 1 - parts * has / expected if expected >= EXPECTED else 0

    others = set(range(DOMAINS))
    for _ in range(PASSES):
        staleness, stale = [], set()
        for body in range(DOMAINS):
            inside = set(np.flatnonzero(bodies.members(body)).tolist())
            count = sum(said.pages[domain] for domain in inside)
            phrases = 2 * sum(said.stale[domain] for domain in inside) / max(1, count) - 1
            counted = [others, others - inside][: 1 + bool(count > FREE * said.pages.sum())]
            first = sum(n for n, domain in zip(new, domains, strict=True) if domain in inside)
            again = sum(second in inside and first not in inside for first, second in spread)
            kinds = (first, new, words, 5), (again, repeats, words, 5), (again, repeats, new, 20)
            staleness.append(max(0, phrases, *(lacking(kind, inside, counted) for kind in kinds)))
            stale |= inside if staleness[-1] else set()
        others = set(range(DOMAINS)) - stale
    return staleness


@settings(deadline=None, max_examples=30)
@given(crawls())
def test_excess_is_that_of_the_bodies_around(crawl):
    said, bodies = crawl
    pages = said.pages
    is_seed = np.isin(np.arange(DOMAINS), bodies.seeds)
    trust = trust_of(is_seed, bodies.links, bodies.degrees)
    total = max(pages.sum(), LEAST)
    staleness = slow_staleness(said, bodies)
    assert staleness_of(said, bodies) == pytest.approx(staleness)

    def around(domain):
        """The domain and the bodies that it is in, but for seeds."""
        return [b for b in range(DOMAINS) if bodies.members(b)[domain] and not is_seed[b]]

    def inside(body):
        return np.flatnonzero(bodies.members(body)).tolist()

    def beyond(weights, credit):
        may = max(FREE, credit * sum(trust[domain] * w for domain, w in weights.items()))
        share = sum(pages[domain] * w for domain, w in weights.items()) / total
        return max(0, 1 - may / max(share, may))

    small = [min(1, each / ENOUGH) for each in staleness]
    few = max(FEW, FREE * total)
    small = [small[domain] * (pages[domain] <= few) for domain in range(DOMAINS)]
    small = {domain: max([0, *(small[b] for b in around(domain))]) for domain in range(DOMAINS)}
    for domain, excess in enumerate(excess_of(said, bodies, pages).of_domains(bodies)):
        most = beyond(small, CREDIT_TOGETHER) * small[domain]
        for body in around(domain):
            most = max(most, beyond(dict.fromkeys(inside(body), 1), CREDIT) * staleness[body])
        assert excess == pytest.approx(most)


@pytest.mark.parametrize(
    ("first", "again", "lost"), [(5, 5, 0), (5, 0, 0.667), (25, 1, 0.667), (15, 1, 0)]
)
def test_a_site_that_invents_words_is_stale(first, again, lost):
    count = 1_000  # the seed links to all others, one of which gave the last 15 of 100 pages
    finders, links = np.full(count, 0), np.array([[0] * (count - 1), range(1, count)])
    finders[0] = NO_PARENT
    domains = np.repeat([2, 1], [85, 15])
    spread = np.repeat(np.arange(100), np.repeat([5, again], [85, 15]))
    firsts = np.zeros_like(spread)
    pages, zeros = np.bincount(domains, minlength=count), np.zeros(count)
    words, new = np.full(100, 60), np.repeat([5, first], [85, 15])
    said = Said(pages, zeros, zeros, domains, words, new, firsts, spread)
    bodies = Bodies(finders, links, np.array([0]), few=0)
    excess = excess_of(said, bodies, said.pages).of_domains(bodies)
    assert excess[1] == pytest.approx(lost, abs=0.001)
    assert excess[0] == excess[2] == 0


def store_of(*urls, inlinks=True):
    store = SampleStore(DomainLedger(inlinks=inlinks))
    add(store, NO_PARENT, *urls)
    return store


def add(store, parent, *urls):
    return store.add(parent, Outlinks(urls, [""] * len(urls), np.zeros((len(urls), 3), "f4")))


def fetch(store, row, pages, *, stale=False):
    """Fetch a sample, and so many pages of its domain in all."""
    store.lease(row)
    store.finish(row, SEED_PATH)
    for _ in range(pages):
        domain = int(store["domain"][row])
        store.ledger.book_page(domain, 1.0)
        store.ledger.note_known(domain, STALE if stale else NOTHING)


@pytest.mark.parametrize(("inlinks", "stale"), [(True, True), (True, False), (False, True)])
def test_links_of_a_stale_and_greedy_body_are_beyond_its_trust(inlinks, stale):
    store = store_of("http://seed.test/", inlinks=inlinks)
    trust = Trust(store)
    assert trust.excess(np.array([0])).tolist() == [0]
    fetch(store, 0, 1)
    hosts = [f"http://{number}.test/" for number in range(400)]
    door, honest, *_ = add(store, 0, *hosts).tolist()
    fetch(store, honest, 200)
    fetch(store, door, 1)
    (inner,) = add(store, door, "http://inner.test/").tolist()
    fetch(store, inner, 2_000, stale=stale)
    rows = add(store, inner, "http://inner.test/2", "http://new.test/")
    excess = trust.excess(np.array([0, honest, door, inner, *rows]))
    assert excess[:2].tolist() == [0, 0]
    earned = trust.earned(np.array([honest, door, inner, *rows]))
    assert earned[0] == 1
    assert earned[1:] == pytest.approx(np.maximum(0, 1 - PRICE * np.maximum(0, 2 * excess[2:] - 1)))
    assert (earned[-1] == 0) == (inlinks and stale)
    later = add(store, inner, "http://newer.test/")  # since the last rating
    fetch(store, later[0], 0)
    later = add(store, later[0], "http://newest.test/")
    seed = add(store, NO_PARENT, "http://late.test/")
    assert trust.excess(np.array([*seed, 0, *seed])).tolist() == [0, 0, 0]
    if inlinks and stale:
        part = (1 - FREE * 2_202 / 2_001) * (2 * 2_000 / 2_001 - 1)
        assert excess[2:] == pytest.approx([part, *[1 - FREE * 2_202 / 2_000] * 3], abs=1e-3)
        assert trust.excess(later).tolist() == [excess[3]]
    else:
        assert not excess.any()
        assert not trust.excess(later).any()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(2, 20), st.floats(0, 1))
def test_sites_that_are_not_fetched_change_nothing_else(seed, width, stale):
    """Whether anything is beyond its trust is found without them, and the bodies are the same."""
    random = np.random.default_rng(seed)
    store = store_of("http://seed.test/")
    for _ in range(12):
        row = int(random.choice(store.pending_rows()))
        fetch(store, row, int(random.integers(1, 60)) ** 2, stale=random.random() < stale)
        said = random.integers(0, len(store.ledger), int(random.integers(0, 9))).tolist()
        new = int(random.integers(0, 40))
        store.ledger.note_known(int(store["domain"][row]), Known(0, 0, 0, 99, new, tuple(said)))
        hosts = random.integers(0, 20 * width, int(random.integers(1, 6 * width))).tolist()
        add(store, row, *(f"http://{host}.test/{row}" for host in hosts))
    bodies, said = Bodies.of(store), store.ledger.said
    expected = excess_of(said, bodies, said.pages).of_domains(bodies)
    few, some = Bodies.of_fetched(store)
    kept = np.union1d(np.flatnonzero(said.pages), said.firsts)
    assert some.pages.tolist() == said.pages[kept].tolist()
    assert few.depths[:-1].tolist() == bodies.depths[kept].tolist()
    assert staleness_of(some, few) == pytest.approx(staleness_of(said, bodies)[kept])
    assert few.sums(some.pages).tolist() == bodies.sums(said.pages)[kept].tolist()
    is_seed = np.isin(np.arange(len(said.pages)), bodies.seeds)
    trust = trust_of(is_seed, bodies.links, bodies.degrees)[kept]
    assert trust_of(is_seed[kept], few.links, few.degrees) == pytest.approx(trust)
    rows = np.arange(len(store))
    assert Trust(store).excess(rows) == pytest.approx(expected[store["domain"][rows]], abs=1e-6)
