import numpy as np
import pytest

from tres_scrapy.config.limit import FrontierLimits, ScopeOptions
from tres_scrapy.frontier import admission
from tres_scrapy.frontier.admission import OUT_OF_SCOPE, Outlinks, Scope, directory_of
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.recovery import restore_samples
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.url.message import below

SEED = "http://seed.test/"


def store_of(**rules):
    return SampleStore(DomainLedger(), Scope.of(ScopeOptions(**rules)))


def add(store, parent, *urls):
    """Add links to a store; return the URLs that entered."""
    actions = np.zeros((len(urls), 3), dtype=np.float32)
    return [store.url(row) for row in store.add(parent, Outlinks(urls, [""] * len(urls), actions))]


def finish(store, url):
    row = next(row for row in range(len(store)) if store.url(row) == url)
    store.lease(row)
    store.finish(row, store.path_after(row, 1.0))
    return row


def followed(urls, **rules):
    store = store_of(**rules)
    add(store, NO_PARENT, SEED)
    return add(store, finish(store, SEED), *urls), store


@pytest.mark.parametrize(
    ("rules", "kept", "refused"),
    [
        ({"allow": ("/food/", r"\.org/")}, "http://a.test/food/1", "http://a.test/news"),
        ({"deny": (r"[?&]sort=",)}, "http://a.test/?q=sort", "http://a.test/?a=1&sort=up"),
        ({"allowed_domains": ("a.test",)}, "http://www.a.test/", "http://aa.test/"),
        ({"allowed_domains": ("edu",)}, "http://x.y.edu/", "http://edu.test/"),
        ({"denied_domains": ("ads.a.test",)}, "http://a.test/", "http://my.ads.a.test/x"),
    ],
)
def test_each_rule_refuses(rules, kept, refused):
    found, store = followed([kept, refused], **rules)
    assert found == [kept]
    assert below(store.admission.scope.taken_counts(), OUT_OF_SCOPE) == {next(iter(rules)): 1}
    assert store.admission.scope.refusal(refused).rule == next(iter(rules))
    assert not store.closure.knows(refused)


def test_seeds_are_exempt():
    store = store_of(allowed_domains=("a.test",), max_per_path=1)
    assert add(store, NO_PARENT, SEED, f"{SEED}2") == [SEED, f"{SEED}2"]


def test_depth_counts_links_from_the_seed():
    first, second, third = (f"http://a.test/{n}" for n in range(3))
    found, store = followed([first], max_depth=2)
    assert found == [first]
    assert add(store, finish(store, first), second) == [second]
    assert add(store, finish(store, second), third) == []
    assert below(store.admission.scope.taken_counts(), OUT_OF_SCOPE) == {"max_depth": 1}


def test_directory_takes_few_urls():
    days = [f"http://a.test/calendar/{year}/{day}" for year in (2025, 2026) for day in "ab"]
    others = ["http://a.test/x", "http://b.test/calendar/2025/a"]
    found, store = followed([*days, *others], max_per_path=2)
    assert found == [*days[:2], *others]
    page = finish(store, others[0])
    assert add(store, page, days[0], days[3]) == [days[0]]  # its URL is known


def test_resumed_directory_is_full():
    first = store_of(max_per_path=2)
    add(first, NO_PARENT, SEED, "http://a.test/d/0")  # seeds do not count
    add(first, finish(first, SEED), "http://a.test/d/1", "http://a.test/d/0")
    for urls, rule in (("http://a.test/d/2", None), ("http://a.test/d/3", "max_per_path")):
        store = store_of(max_per_path=2)
        parts = store_parts(first)
        restore_samples(store, **parts)
        refusal = store.admission.scope.refusal(urls)
        assert (refusal and refusal.rule) == rule
        add(first, finish(first, "http://a.test/d/1"), "http://a.test/d/2")


def store_parts(store):
    """Return what a journal saves of a store."""
    return {
        "records": store.saved(0),
        "hosts": store.hosts.names,
        "urls": store.closure.urls,
        "anchors": list(store.anchors),
        "cues": store.cues.since(0),
    }


def test_redirect_is_refused_except_of_seeds():
    found, store = followed(["http://a.test/1"], denied_domains=("bad.test",))
    (row,) = (row for row in range(len(store)) if store.url(row) == found[0])
    assert store.is_refused(row, "http://bad.test/")
    assert not store.is_refused(row, "http://a.test/2")
    assert not store.is_refused(0, "http://bad.test/")


def test_no_rule_needs_no_scope():
    assert Scope.of(ScopeOptions()) is None


@pytest.mark.parametrize(
    ("url", "directory"),
    [
        ("http://a.test/", "a.test/"),
        ("http://a.test/b/c?d=/e/f", "a.test/b/"),
        ("http://a.test/2026/11/x", "a.test/0/0/"),
    ],
)
def test_directory_has_no_numbers(url, directory):
    assert directory_of(url) == directory


def test_only_links_that_enter_count_in_their_directory():
    """Links that do not fit into the frontier may come again, on any number of pages."""
    store = SampleStore(
        DomainLedger(limits=FrontierLimits(pending=1)), Scope.of(ScopeOptions(max_per_path=3))
    )
    add(store, NO_PARENT, SEED)
    page = finish(store, SEED)
    for _ in range(5):
        add(store, page, "http://a.test/1", "http://a.test/2")
    assert not below(store.admission.scope.taken_counts(), OUT_OF_SCOPE)
    assert store.admission.scope.refusal("http://a.test/3") is None


def test_pages_of_unknown_language_pass():
    scope = Scope.of(ScopeOptions(languages=("de", "en")))
    assert [scope.reads(language) for language in ("en", "de", "", "fr")] == [True] * 3 + [False]
    assert Scope.of(ScopeOptions(max_depth=1)).reads("fr")


def test_texts_of_a_domain_are_bounded(monkeypatch):
    monkeypatch.setattr(admission, "MAX_TEXT", 60)
    other = "http://other.test/"
    store = store_of()
    add(store, NO_PARENT, SEED, other)
    first = finish(store, SEED)
    links = [f"http://a.test/{i:06}" for i in range(4)]  # 20 characters each
    assert add(store, first, other, *links) == [other, *links[:3]]
    assert add(store, first, links[3], links[0]) == []
    assert add(store, finish(store, other), links[3]) == [links[3]]
    assert below(store.admission.taken_counts(), OUT_OF_SCOPE) == {"links_of_domain": 3}
    assert not store.admission.taken_counts()
