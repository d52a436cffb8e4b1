from __future__ import annotations

import re
from collections import Counter
from random import Random
from urllib.parse import urljoin, urlsplit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.lab.webs.markup import CALENDAR, ENCODING_SHARES, ENCODINGS, SESSION
from tres_scrapy.lab.webs.noise import Shuffle, mix, unit
from tres_scrapy.lab.webs.prose import EMPTY
from tres_scrapy.lab.webs.site import HUB, KINDS, MIXED, OFF, PURE, SITE_BITS, SITES
from tres_scrapy.lab.webs.synthetic import SyntheticWeb
from tres_scrapy.lab.webs.synthetic_page import COPY, FILE, REDIRECT, Traits
from tres_scrapy.lab.webs.vocabulary import tables

WEB = SyntheticWeb("food", seed=1)
EVERY_SITE = np.arange(SITES)


def links(url: str) -> list[str]:
    tree = LexborHTMLParser(WEB.answer(url).body)
    return [urljoin(url, node.attributes["href"] or "") for node in tree.css("a")]


def traits_of(site: int, number: int) -> Traits:
    return WEB.pages.traits(np.array([site]), np.array([number]))


def url_of(site: int, number: int) -> str:
    return WEB.addresses.urls(traits_of(site, number))[0]


def some_pages(kind: int, count: int = 400) -> list[str]:
    sites = np.flatnonzero(WEB.sites.kind == kind)[:count]
    numbers = WEB.pages.first(sites) + sites % 3
    return WEB.addresses.urls(WEB.pages.traits(sites, numbers))


def content_relevance(kind: int) -> float:
    sites = np.repeat(np.flatnonzero(WEB.sites.kind == kind)[:3000], 5)
    numbers = WEB.pages.first(sites) + np.arange(len(sites)) % 7
    return float(WEB.pages.traits(sites, numbers).relevant.mean())


@pytest.fixture(scope="module")
def walk() -> list[str]:
    """The first URLs of a breadth-first crawl."""
    found = list(WEB.seeds)
    for url in found[:12]:
        found += [u for u in links(url) if u not in found]
    return found[:500]


def test_same_seed_same_answers(walk: list[str]) -> None:
    again = SyntheticWeb("food", seed=1)
    assert again.seeds == WEB.seeds
    assert [again.answer(url) for url in walk[:50]] == [WEB.answer(url) for url in walk[:50]]


def test_another_seed_is_another_web() -> None:
    other = SyntheticWeb("food", seed=2)
    assert other.seeds != WEB.seeds
    assert other.answer(WEB.seeds[0]) != WEB.answer(WEB.seeds[0])


@pytest.mark.parametrize("topic", ["food", "sports", "hardware"])
def test_seed_page_is_relevant(topic: str) -> None:
    web = SyntheticWeb(topic, seed=3)
    answer = web.answer(web.seeds[0])
    assert (answer.status, answer.kind, answer.relevant) == (200, "page", True)


def test_unknown_web_topic_is_named() -> None:
    with pytest.raises(ValueError, match=r"topic='opera'.*food, sports, hardware"):
        SyntheticWeb("opera")


def test_page_on_any_of_several_topics_counts() -> None:
    both = SyntheticWeb("food+sports", seed=1)
    assert both.seeds == WEB.seeds
    sports = np.flatnonzero(WEB.sites.main == list(tables()).index("sports") - 1)
    assert WEB.pages.vocabulary.topics[WEB.sites.main[sports[0]]] == "sports"
    numbers = WEB.pages.first(sports[:200])
    urls = WEB.addresses.urls(WEB.pages.traits(sports[:200], numbers))
    urls += [url_of(int(site), int(WEB.sites.size[site])) for site in sports[:20]]  # static pages
    both_labels, food = both.labels(urls), WEB.labels(urls)
    assert sum(food) < 5
    assert sum(both_labels) > 120
    assert not any(both_labels[200:])
    assert all(label or not also for label, also in zip(both_labels, food, strict=True))
    assert [label(both, url) for url in urls] == both_labels
    with pytest.raises(ValueError, match="topic='cricket' has no synthetic web"):
        SyntheticWeb("food+cricket")


def test_few_links_are_dead(walk: list[str]) -> None:
    answers = [WEB.answer(url) for url in walk]
    assert all(answer.status != 502 for answer in answers)
    assert sum(answer.kind in ("missing", "soft404") for answer in answers) < len(answers) * 0.08


@given(st.integers(0, SITES - 1), st.integers(0, 200_000))
@settings(max_examples=2 * settings.default.max_examples)
def test_url_is_read_back(site: int, draw: int) -> None:
    number = draw % (int(WEB.sites.size[site]) + 4)
    url = url_of(site, number)
    parts = urlsplit(url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    assert WEB.addresses.site(parts.netloc) == site
    found, page = WEB.addresses.find([(site, "/nothing"), (site, target)])
    assert found.tolist() == [1]
    assert WEB.addresses.urls(page) == [url]


@given(st.lists(st.integers(0, 2**63 - 1), min_size=2, max_size=4))
def test_hash_equals_array_hash(parts: list[int]) -> None:
    assert mix(*parts)[0] == mix(parts[0], *(np.array([part]) for part in parts[1:]))[0]


def test_a_draw_follows_the_word_counts() -> None:
    vocabulary = WEB.pages.vocabulary
    counts = tables()["food"]
    drawn = vocabulary.words[vocabulary.draw(np.zeros(5000, int), mix(1, np.arange(5000)))]
    found = Counter(drawn.tolist())
    often, seldom = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    assert set(found) <= set(counts)
    assert found[often] > 5 * found[seldom]


def test_word_tables_hold_single_words() -> None:
    words = [word for table in tables().values() for word in table]
    assert all(re.fullmatch(r"[a-zà-öø-ÿ]{2,14}", word) for word in words)


@given(st.integers(0, (1 << SITE_BITS) - 1), st.integers(0, 2**60))
def test_a_shuffle_is_undone(number: int, key: int) -> None:
    shuffle = Shuffle(SITE_BITS, key)
    assert shuffle.back(shuffle.forward(number)) == number


TARGETS = st.one_of(
    st.text("/?&=.-0123456789abcdefz%", max_size=30),
    st.sampled_from(
        ["/go/0/", "/go/9/", "/calendar/0/0", "/calendar/999999/99", "?page=", "?sid=0"]
    ),
)


@given(st.integers(0, SITES - 1), TARGETS)
@settings(max_examples=3 * settings.default.max_examples)
def test_any_path_has_an_answer(site: int, target: str) -> None:
    answer = WEB.answer(f"http://{WEB.addresses.host(site)}/{target.lstrip('/')}")
    assert answer.status in (200, 302, 404, 500, 503)
    assert answer.site_kind in KINDS


def test_sites_share_no_domain() -> None:
    hosts = [WEB.addresses.host(site) for site in range(0, SITES, 5)]
    assert len({".".join(host.split(".")[-2:]) for host in hosts}) == len(hosts)


@pytest.mark.parametrize(
    "url", ["http://no-such.test/", "http://example.org/", "http://kivota.com/", "http://test/"]
)
def test_outside_host_is_missing(url: str) -> None:
    answer = WEB.answer(url)
    assert (answer.status, answer.kind, answer.relevant) == (502, "missing", False)


def label(web: SyntheticWeb, url: str) -> bool:
    """Fetch a page and every page it redirects to, as a crawler would."""
    answer = web.answer(url)
    for _ in range(10):
        if answer.kind != "redirect":
            break
        answer = web.answer(dict(answer.headers)["Location"])
    return answer.kind == "page" and answer.relevant


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("topic", ["food", "sports", "hardware"])
def test_labels_equal_linked_pages(topic: str) -> None:
    web, rng, urls = SyntheticWeb(topic, seed=5), Random(5), list[str]()
    while len(urls) < 3000:
        url = rng.choice(urls or web.seeds)
        nodes = LexborHTMLParser(web.answer(url).body).css("a")
        urls += [urljoin(url, node.attributes["href"] or "") for node in nodes]
    sample = rng.sample(urls, 700)
    assert web.labels(sample) == [label(web, url) for url in sample]
    assert len(set(web.labels(sample))) == 2


@pytest.mark.parametrize(
    "form",
    ["{path}", "{path}{mark}ref=home", "{path}{mark}print=1", "{path}{mark}sid=1f", "{path}#top",
     "{path}{mark}x=1", "go/3/{path}", "go/1/go/0/{path}{mark}sid=2", "robots.txt", "calendar/1/1"],
)  # fmt: skip
def test_labels_see_through_detours(form: str) -> None:
    sites = np.flatnonzero((WEB.sites.kind == PURE) & (WEB.documents.traps == SESSION))[:5]
    sites = np.append(sites, np.flatnonzero(WEB.sites.kind == PURE)[:15]).repeat(8)
    numbers = WEB.pages.first(sites) + np.arange(len(sites)) % 8
    urls = []
    for plain in WEB.addresses.urls(WEB.pages.traits(sites, numbers)):
        base, path = plain.split(".test/")
        urls.append(f"{base}.test/" + form.format(path=path, mark="?&"["?" in path]))
    assert WEB.labels(urls) == [label(WEB, url) for url in urls]


@given(st.lists(st.tuples(st.integers(0, SITES - 1), TARGETS), max_size=5))
def test_any_urls_have_labels(places: list[tuple[int, str]]) -> None:
    urls = [f"http://{WEB.addresses.host(s)}/{target.lstrip('/')}" for s, target in places]
    urls.append("http://no-such.test/")
    assert WEB.labels(urls) == [label(WEB, url) for url in urls]


def test_site_sizes_have_a_heavy_tail() -> None:
    sizes = WEB.sites.size
    assert 20 < np.median(sizes) < 80
    assert (sizes > 50_000).sum() > 10
    assert sizes.sum() > 5_000_000


def test_relevance_follows_the_kind_of_site() -> None:
    assert 0.85 < content_relevance(PURE) < 0.95
    assert 0.2 < content_relevance(MIXED) < 0.6
    assert 0 < content_relevance(OFF) < 0.02
    assert content_relevance(HUB) == 0


def test_hub_links_to_relevant_sites() -> None:
    topical = np.flatnonzero((WEB.sites.kind == HUB) & (WEB.sites.main == WEB.sites.topic))
    targets = WEB.documents.links.targets(traits_of(int(topical[0]), 5))
    traits = WEB.pages.traits(targets.site, targets.number)
    assert traits.relevant.mean() > 0.4
    assert len(set(targets.site[traits.relevant].tolist())) > 10


@pytest.mark.slow
def test_relevance_is_local() -> None:
    """P 2.1 assumes topical locality: a page's reward predicts the rewards of its outlinks."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for site in range(1500):
        page = traits_of(site, int(WEB.pages.first(np.array([site]))[0]))
        targets = WEB.documents.links.targets(page)
        share = WEB.pages.traits(targets.site, targets.number).relevant.mean()
        shares[bool(page.relevant[0])].append(float(share))
    assert np.mean(shares[True]) > 4 * np.mean(shares[False])


def test_relevant_pages_have_irrelevant_index() -> None:
    sites = np.flatnonzero(WEB.sites.kind == PURE)
    indexes = WEB.pages.traits(sites, np.ones(len(sites), np.int64))
    assert 0.2 < indexes.relevant.mean() < 0.5


def test_new_links_leave_the_site(walk: list[str]) -> None:
    """P 2.6: 800,000 frontier URLs after 20,000 pages, about 40 new ones each."""
    pages = [url for url in walk[:60] if WEB.answer(url).kind == "page"]
    known, abroad = set(walk), 0
    for url in pages:
        fresh = set(links(url)) - known
        known |= fresh
        abroad += sum(urlsplit(u).netloc != urlsplit(url).netloc for u in fresh)
    new = len(known) - len(set(walk))
    assert 20 < new / len(pages) < 50
    assert abroad > new / 2


def test_tempting_and_faint_pages_exist() -> None:
    shares: dict[bool, list[float]] = {True: [], False: []}
    for site in np.flatnonzero(WEB.sites.kind == PURE)[:2000].tolist():
        page = traits_of(site, int(WEB.sites.sections[site]) + 1)
        mixture = WEB.documents.prose.mixture(page)
        label = bool(page.relevant[0])
        shares[label].append(mixture.share if label else mixture.other_share)
    doubt = WEB.pages.profile.doubt
    assert 0.05 < np.mean(np.array(shares[True]) < doubt) < 0.15
    assert 0.0 < np.mean(np.array(shares[False]) > doubt) < 0.1


def test_half_of_the_anchors_say_nothing() -> None:
    texts = [
        node.text()
        for url in some_pages(OFF, 60)
        for node in LexborHTMLParser(WEB.answer(url).body).css("main a")
    ]
    assert 0.4 < sum(text in EMPTY for text in texts) / len(texts) < 0.6


@pytest.mark.long
@pytest.mark.slow
def test_nothing_gives_label_away() -> None:
    """Honest anchors have words of the target's title, but some anchors of each label have not."""
    topic = set(WEB.pages.vocabulary.words[WEB.pages.vocabulary.quantiles[WEB.sites.topic]])
    told: dict[bool, list[bool]] = {True: [], False: []}
    for url in some_pages(PURE, 25):
        for node in LexborHTMLParser(WEB.answer(url).body).css("main a"):
            answer = WEB.answer(urljoin(url, node.attributes["href"] or ""))
            if answer.kind == "page":
                told[answer.relevant].append(bool(topic & set(node.text().split())))
    assert 0.2 < np.mean(told[True]) < 0.6
    assert 0.02 < np.mean(told[False]) < 0.3


def test_page_repeats_navigation(walk: list[str]) -> None:
    home, content = links(WEB.seeds[0]), links(urljoin(WEB.seeds[0], "/about"))
    navigation = {urljoin(WEB.seeds[0], path) for path in ("/", "/about", "/contact", "/login")}
    assert navigation <= set(home) & set(content)


def test_copy_keeps_text_and_label() -> None:
    sites = np.flatnonzero(WEB.sites.size > 100)
    traits = WEB.pages.traits(sites, np.full(len(sites), 50))
    copy = int(np.flatnonzero(traits.fate == COPY)[0])
    site, number, source = int(traits.site[copy]), 50, int(traits.source[copy])
    pages = [traits_of(site, n) for n in (number, source)]
    texts = [WEB.documents.prose.sentences(page, 90) for page in pages]
    assert source != number
    assert texts[0] == texts[1]
    assert pages[0].relevant == pages[1].relevant


@pytest.mark.parametrize("alias", ["ref=home", "print=1"])
def test_alias_has_same_page(alias: str) -> None:
    assert WEB.answer(f"{WEB.seeds[0]}?{alias}") == WEB.answer(WEB.seeds[0])


def test_redirects_end_at_page() -> None:
    url, hops = f"{WEB.seeds[0]}go/3/about", 0
    while (answer := WEB.answer(url)).kind == "redirect":
        url, hops = dict(answer.headers)["Location"], hops + 1
    assert hops == 3
    assert (url, answer.kind) == (f"{WEB.seeds[0]}about", "page")


def test_some_redirects_leave_their_site() -> None:
    sites = np.flatnonzero(WEB.sites.size > 100)
    traits = WEB.pages.traits(sites, np.full(len(sites), 60))
    moved = sites[traits.fate == REDIRECT][:40].tolist()
    hosts = [dict(WEB.answer(url_of(s, 60)).headers)["Location"].split("/")[2] for s in moved]
    abroad = [WEB.addresses.site(host) != s for host, s in zip(hosts, moved, strict=True)]
    assert 0 < sum(abroad) < len(abroad)


def test_missing_page_follows_its_site() -> None:
    answers = [WEB.answer(f"http://{WEB.addresses.host(s)}/nothing/here") for s in range(100)]
    assert {(a.status, a.kind) for a in answers} == {(404, "missing"), (200, "soft404")}
    assert all(b"not found" in answer.body for answer in answers)


def test_a_file_is_no_page() -> None:
    fates = WEB.pages.fate(EVERY_SITE[:500], np.full(500, 12))
    answer = WEB.answer(url_of(int(np.flatnonzero(fates == FILE)[0]), 12))
    assert (answer.kind, answer.relevant) == ("other", False)
    assert dict(answer.headers)["Content-Type"] in ("application/pdf", "image/jpeg")


def test_the_calendar_never_ends() -> None:
    site = next(s for s in range(SITES) if WEB.documents.trap(s) == CALENDAR)
    url = f"http://{WEB.addresses.host(site)}/calendar/2024/12"
    for _ in range(30):
        assert WEB.answer(url).kind == "trap"
        url = next(u for u in links(url)[::-1] if re.search(r"/calendar/\d+/\d+$", u))
    assert url.endswith("/calendar/2027/6")


def test_session_site_changes_urls() -> None:
    site = next(s for s in range(SITES) if WEB.documents.trap(s) == SESSION)
    home = f"http://{WEB.addresses.host(site)}/"
    first = next(url for url in links(home) if "sid=" in url)
    second = next(url for url in links(first) if "sid=" in url)
    assert WEB.answer(first).kind == WEB.answer(second).kind == "trap"
    assert first.split("sid=")[1] != second.split("sid=")[1]


@pytest.mark.parametrize("place", range(len(ENCODINGS)))
def test_every_encoding_is_readable(place: int) -> None:
    codec, header, _ = ENCODINGS[place]
    drawn = np.searchsorted(ENCODING_SHARES, [unit(mix(WEB.key, 50, s))[0] for s in range(400)])
    site = int(np.flatnonzero(drawn == place)[0])
    answer = WEB.answer(f"http://{WEB.addresses.host(site)}/")
    assert answer.body.decode(codec).startswith("<!DOCTYPE html>")
    assert ("charset=" + header in dict(answer.headers)["Content-Type"]) == bool(header)


def test_robots_rules_ask_patience() -> None:
    answers = [WEB.answer(f"http://{WEB.addresses.host(s)}/robots.txt") for s in range(300)]
    assert {answer.kind for answer in answers} == {"robots"}
    assert all(b"Disallow: /login" in answer.body for answer in answers)
    assert 0 < sum(b"Crawl-delay" in answer.body for answer in answers) < 30


def test_few_hosts_are_slow() -> None:
    urls = [f"http://{WEB.addresses.host(site)}/robots.txt" for site in range(500)]
    delays = [WEB.answer(url).delay for url in urls]
    fast = SyntheticWeb("food", seed=1, slow=False)
    assert 0 < sum(delay > 0 for delay in delays) < 40
    assert all(delay == 0 or 0.5 <= delay <= 3 for delay in delays)
    assert not any(fast.answer(url).delay for url in urls)


def test_answer_names_site_kind() -> None:
    assert [WEB.answer(some_pages(kind, 1)[0]).site_kind for kind in range(4)] == list(KINDS)
