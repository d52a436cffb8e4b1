import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.limit import Cap, FrontierLimits
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.page.copies import Known
from tres_scrapy.url.canonical import registrable_domain


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("en.wikipedia.org", "wikipedia.org"),
        ("www.bbc.co.uk", "bbc.co.uk"),
        ("a.b.kivo.test", "kivo.test"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("example.com.", "example.com"),
        ("www.me.github.io", "me.github.io"),
        ("me.blogspot.com", "me.blogspot.com"),
        ("blogspot.com", "blogspot.com"),
        ("s3.amazonaws.com", "s3.amazonaws.com"),
        ("me.s3.amazonaws.com", "me.s3.amazonaws.com"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("", ""),
    ],
)
def test_registrable_domain(host, domain):
    assert registrable_domain(host) == domain


@pytest.mark.parametrize("text", ["none", "", " None "])
def test_no_cap(text):
    assert Cap.parse(text) is None


@pytest.mark.parametrize("text", ["ten", "-1", "0", "2_5", "5_0", "5_2_1", "50_2_1", "1.5"])
def test_bad_cap_is_refused(text):
    with pytest.raises(ValueError, match="must"):
        Cap.parse(text)


@pytest.mark.parametrize(
    ("text", "caps"),
    [("10", [10, 10, 10, 10]), ("5_2", [5, 2, 2, 2]), ("12_2", [12, 6, 3, 2])],
)
def test_adaptive_cap_halves_to_floor(text, caps):
    assert [Cap.parse(text).at(progress) for progress in (0, 0.4, 0.7, 1)] == caps


def test_unvisited_domain_is_neutral():
    ledger = DomainLedger()
    domain = np.array([ledger.id_of("a.test"), ledger.id_of("b.test")])
    np.testing.assert_array_equal(ledger.features(domain), [[0.5, 0.5], [0.5, 0.5]])
    ledger.book_page(domain[0], 1.0)
    ledger.book_page(domain[0], 0.0)
    np.testing.assert_array_equal(ledger.features(domain), [[0.5, 1.0], [0.5, 0.5]])
    assert ledger.relevant_domains == 1
    ledger.count_lease(domain[1])
    assert ledger.features(domain[1:]).tolist() == [[0.5, 1.0]], "its first fetch is running"
    ledger.count_lease(domain[1], -1)
    assert ledger.features(domain[1:]).tolist() == [[0.5, 0.5]]


def test_prior_visits_damp_young_ratios():
    ledger = DomainLedger(prior=2)
    domain = np.array([ledger.id_of("a.test")])
    ratios = []
    for _ in range(3):
        ratios.append(float(ledger.features(domain)[0, 0]))
        ledger.book_page(domain[0], 1.0)
    assert ratios == pytest.approx([1 / 2, 2 / 3, 3 / 4])


def test_first_pages_set_new_domain_prior():
    ledger = DomainLedger(inlinks=True, prior=2)
    a, b, c, d = (ledger.id_of(f"{name}.test") for name in "abcd")
    domains = np.array([a, b, c, d])
    ledger.add_inlinks(a, np.array([c, c, a, d]), relevant=True)
    ledger.add_inlinks(a, np.array([c, d]), relevant=False)  # not its first page
    ledger.add_inlinks(b, np.array([c]), relevant=True)
    ledger.add_inlinks(b, np.array([d]), relevant=False)
    shares = [0.5, 0.5, 2 / 3, 1 / 3]
    np.testing.assert_allclose(ledger.features(domains)[:, 0], shares, rtol=1e-6)
    ledger.book_page(c, 0.0)
    np.testing.assert_allclose(ledger.features(domains)[2], [1 / 3, 1.0], rtol=1e-6)


EVENTS = st.lists(
    st.tuples(st.sampled_from(["lease", "page", "failure", "links", "read"]), st.integers(0, 4)),
    max_size=30,
)


@given(events=EVENTS, prior=st.sampled_from([0.0, 10.0]))
def test_features_follow_every_count(events, prior):
    ledger, again = (DomainLedger(prior=prior, inlinks=True) for _ in range(2))
    for number, (kind, name) in enumerate(events):
        for each in (ledger, again):
            domain = each.id_of(f"{name}.test")
            if kind == "lease":
                each.count_lease(domain, 1)
            elif kind == "page":
                each.book_page(domain, float(number % 2))
            elif kind == "failure":
                each.book_failure(domain)
            elif kind == "links":
                each.add_inlinks(domain, np.arange(len(each)), relevant=bool(number % 2))
        if kind == "read":  # `again` reads only at the end
            ledger.features(np.arange(len(ledger)))
    every = np.arange(len(ledger))
    np.testing.assert_array_equal(ledger.features(every), again.features(every))


def test_paper_ignores_new_domains():
    ledger = DomainLedger()
    ledger.add_inlinks(ledger.id_of("a.test"), np.array([ledger.id_of("b.test")]), relevant=True)
    np.testing.assert_array_equal(ledger.features(np.array([1])), [[0.5, 0.5]])


def test_cap_counts_open_leases():
    ledger = DomainLedger(Cap(2, 2))
    domain = np.array([ledger.id_of("a.test")])
    ledger.book_page(domain[0], 1.0)
    ledger.book_failure(domain[0])
    assert not ledger.full(domain)[0]
    ledger.count_lease(domain[0])
    assert ledger.full(domain)[0]
    assert not ledger.exhausted(domain)[0]
    ledger.count_lease(domain[0], -1)
    ledger.book_page(domain[0], 0.0)
    assert ledger.exhausted(domain)[0]


def test_failing_domain_is_given_up():
    ledger = DomainLedger(limits=FrontierLimits(failures=2))
    domain = np.array([ledger.id_of("a.test")])
    for page in (False, True, False):
        assert not ledger.full(domain)[0]
        ledger.book_page(domain[0], 1.0) if page else ledger.book_failure(domain[0])
    assert not ledger.exhausted(domain)[0]
    ledger.book_failure(domain[0])
    ledger.book_page(domain[0], 1.0)  # it was under way
    assert ledger.exhausted(domain)[0]
    assert ledger.full(domain)[0]
    assert ledger.domains_given_up == 1


def test_dead_links_end_no_domain():
    ledger = DomainLedger(limits=FrontierLimits(failures=2))
    domain = np.array([ledger.id_of("a.test")])
    for _ in range(100):
        ledger.book_failure(domain[0], dead_link=True)
    assert not ledger.exhausted(domain)[0]


@pytest.mark.parametrize("pages", [0, 1])
def test_blameless_failures_spare_known_domains(pages):
    ledger = DomainLedger(limits=FrontierLimits(failures=2))
    domain = np.array([ledger.id_of("a.test")])
    for _ in range(pages):
        ledger.book_page(domain[0], 0.0)
    for _ in range(3):
        ledger.book_failure(domain[0], blameless=True)
    assert ledger.exhausted(domain)[0] == (pages == 0)


def test_blameless_failures_hide_no_others():
    ledger = DomainLedger(limits=FrontierLimits(failures=2))
    domain = np.array([ledger.id_of("a.test")])
    ledger.book_page(domain[0], 0.0)
    for blameless in (False, True, True, False):
        ledger.book_failure(domain[0], blameless=blameless)
    assert ledger.exhausted(domain)[0]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from([0.0, 1.0, None, "blameless", "dead"]),
            st.integers(0, 2),
        )
    )
)
def test_restored_ledger_is_the_same(visits):
    kept, restored = (DomainLedger(limits=FrontierLimits(failures=2)) for _ in range(2))
    for ledger in (kept, restored):
        for name in "abc":
            ledger.id_of(name)
    for domain, reward, finder in visits:
        if isinstance(reward, float):
            kept.book_page(domain, reward)
        else:
            blameless, dead = reward == "blameless", reward == "dead"
            kept.book_failure(domain, blameless=blameless, dead_link=dead, finder=finder)
    domains, finders = (np.array([each[i] for each in visits], dtype=np.int32) for i in (0, 2))
    rewards = np.array([reward if isinstance(reward, float) else -1 for _, reward, _ in visits])
    kinds = [
        np.array([reward == kind for _, reward, _ in visits], dtype=np.bool_)
        for kind in ("blameless", "dead")
    ]
    restored.restore(domains, rewards >= 0, rewards > 0, *kinds, finders=finders)
    pairs = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    assert restored.ended(*pairs).tolist() == kept.ended(*pairs).tolist()
    for column in ("visits", "pages", "relevant", "failures"):
        assert restored._records[column].tolist() == kept._records[column].tolist()
    for ledger in (kept, restored):
        ledger.cap = Cap(1, 1)  # neither count depends on MAX
        assert ledger.relevant_domains == (ledger._records["relevant"] > 0).sum()
        assert ledger.pages == ledger._records["pages"].sum()
        assert ledger.domains_given_up == kept.domains_given_up


def test_domain_pages_are_found_by_name():
    ledger = DomainLedger()
    ledger.book_page(ledger.id_of("a.test"), 0.0)
    ledger.book_failure(ledger.id_of("a.test"))
    assert (ledger.pages_of("a.test"), ledger.pages_of("b.test")) == (1, 0)
    assert len(ledger) == 1, "who asks adds nothing"


@pytest.mark.parametrize(("cap", "others"), [(None, False), (Cap(1, 1), True)])
def test_budget_of_a_domain_replaces_the_cap(cap, others):
    ledger = DomainLedger(cap, limits=FrontierLimits(budgets=(("www.a.test", 2),)))
    domains = np.array([ledger.id_of_host("x.a.test"), ledger.id_of_host("b.test")], np.int32)
    for domain in domains:
        ledger.book_page(int(domain), 1.0)
    assert ledger.at_cap(domains).tolist() == [False, others]
    ledger.count_lease(int(domains[0]))
    assert ledger.full(domains).tolist() == [True, others]


def test_budgets_are_read_from_a_file(tmp_path):
    path = tmp_path / "budgets.txt"
    path.write_text("# few\nexample.org 50\n  www.B.test  3\n")
    read = FrontierLimits.__dataclass_fields__["budgets"].metadata["parse"]
    assert read(str(path)) == (("example.org", 50), ("www.b.test", 3))
    for wrong in ("example.org", "example.org 0", "example.org many", "a/b 3", ". 3"):
        path.write_text(wrong)
        with pytest.raises(ValueError, match="must be a file of lines"):
            read(str(path))


@pytest.mark.parametrize(
    ("names", "rule"),
    [
        (["blog.example.org", "example.org"], "both of the domain 'example.org'"),
        (["a.test", "a.test"], "both of the domain 'a.test'"),
        (["edu"], "'edu' is not one domain"),
        (["github.io"], "'github.io' is not one domain"),
    ],
)
def test_budget_is_of_one_domain(names, rule):
    with pytest.raises(ConfigError, match=rule):
        FrontierLimits(budgets=tuple((name, 5) for name in names))


def test_words_of_recent_pages_are_compared(monkeypatch):
    monkeypatch.setattr("tres_scrapy.frontier.ledger.RECENT", 2)
    ledger = DomainLedger(None)
    first, second = (ledger.id_of(f"{name}.test") for name in "ab")
    ledger.note_known(first, Known(0, 0, 0, 3, 3))
    ledger.note_known(second, Known(0, 0, 0, 4, 1, (first,)))
    ledger.note_known(first, Known(0, 0, 0, 5, 0, (second, second)))
    said = ledger.said
    assert [said.domains.tolist(), said.words.tolist()] == [[second, first], [4, 5]]
    assert [said.firsts.tolist(), said.spread.tolist()] == [[first, second, second], [0, 1, 1]]
