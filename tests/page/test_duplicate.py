import json
import lzma
import random
from collections import defaultdict
from itertools import combinations

import pytest
from conftest import DATA
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.page.copies import (
    LANES,
    MAX_DIFFERENCE,
    MAX_DIFFERENCE_AT_ADDRESS,
    Duplicates,
    Memory,
    fingerprint,
)
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import Page, read_page

PAGES = DATA / "pages.jsonl.xz"
WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]


def page(text, url="http://a.test/", title="Bread", canonical=""):
    return Page(url, title, text, (), canonical=canonical)


def prose(seed, length=300):
    return random.Random(seed).choices(WORDS, k=length)


def is_copy(first, second):
    pages = Duplicates()
    assert pages.add(fingerprint(first))
    return not pages.add(fingerprint(second))


@pytest.mark.parametrize(
    ("title", "text", "same"),
    [
        ("Bread", "flour and water", True),
        ("bread", "Flour,  and water - 17.", True),
        ("Bread", "flour and wine", False),
        ("Cake", "flour and water", False),
    ],
)
def test_same_words_are_copies(title, text, same):
    other = page(text, "http://a.test/?sid=2", title)
    assert is_copy(page("flour and water", "http://a.test/?sid=1"), other) is same


def test_pages_without_words_are_copies():
    assert is_copy(page("", title=""), page("17", "http://b.test/", title=""))


@pytest.mark.parametrize("length", [300, 1_000, 20_000])
def test_changed_date_is_no_new_page(length):
    words = prose(1, length)
    changed = [*words[:50], "may", "rqxzv", *words[52:200], "seen", *words[201:]]
    assert is_copy(page(" ".join(words)), page(" ".join(changed), "http://a.test/?at=2"))


def test_another_sidebar_makes_no_new_page():
    words = prose(1, 1_000)
    first, second = (page(" ".join(words + prose(seed, 15)), f"/{seed}") for seed in (2, 3))
    assert is_copy(first, second)


def test_shared_template_is_no_copy():
    template = prose(1)
    first, second = (page(" ".join(template + prose(seed, 75)), f"/{seed}") for seed in (2, 3))
    assert not is_copy(first, second)


@pytest.mark.parametrize(("own", "same"), [(60, True), (600, False)])
def test_canonical_url_needs_half_the_text(own, same):
    """Page 19 of a blog declares page 1 as its canonical URL, but is a different page."""
    first, second = (
        page(" ".join(prose(1) + prose(seed, own)), f"http://a.test/{seed}", canonical="/one")
        for seed in (2, 3)
    )
    assert is_copy(first, second) is same


def test_page_at_canonical_url_is_compared():
    first = page(" ".join(prose(1) + prose(2, 60)), "http://a.test/?x", canonical="http://a.test/")
    assert is_copy(first, page(" ".join(prose(1) + prose(3, 60)), "http://a.test/"))


def test_many_pages_are_told_apart():
    pages = Duplicates()
    marks = [fingerprint(page(" ".join(prose(seed, 50)), f"/{seed}")) for seed in range(1_500)]
    assert all(pages.add(mark) for mark in marks)
    assert not any(pages.add(mark) for mark in marks)


def test_a_word_spreads_to_its_second_site_only():
    memory = Memory()
    mark, other = (fingerprint(page(" ".join(prose(seed, 30)), "/")) for seed in (1, 2))
    own = memory.note(mark, 7)
    assert own.words > 20
    assert own.spread == memory.note(mark, 7).spread == ()
    common = memory.note(other, 0).spread
    assert set(common) <= {7}
    assert memory.note(mark, 3).spread == (7,) * (own.words - len(common))
    assert memory.note(mark, 4).spread == memory.note(mark, 7).spread == ()


flips = st.lists(st.integers(0, LANES - 1), max_size=70)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 2**LANES - 1]), flips)))
def test_copies_equal_slow_reference(told):
    pages, kept = Duplicates(), []
    for address, sketch, flipped in told:
        for lane in flipped:
            sketch ^= 1 << lane  # noqa: PLW2901
        is_new = not any(
            (sketch ^ other).bit_count()
            <= (MAX_DIFFERENCE_AT_ADDRESS if address == place else MAX_DIFFERENCE)
            for place, other in kept
        )
        if is_new:
            kept.append((address, sketch))
        assert pages.add(address.encode() * 8 + sketch.to_bytes(LANES // 8)) is is_new


@pytest.fixture(scope="module")
def sites():
    """Return real pages by host, for hosts with several pages."""
    if not PAGES.exists():
        pytest.skip("needs shared/data/pages.jsonl.xz")
    found = defaultdict(list)
    with lzma.open(PAGES, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            if record["host"]:
                found[record["host"]].append(record)
    several = [records[:6] for records in found.values() if len(records) > 1]
    return [
        [
            read_page(record["html"], f"http://{i}.test/{j}", language=False)
            for j, record in enumerate(records)
        ]
        for i, records in enumerate(several)
    ]


def shingles(page):
    words = tokenise(f"{page.title} {page.text}")
    return set(zip(words, words[1:], words[2:], strict=False))


@pytest.mark.long
@pytest.mark.slow
def test_real_copies_share_their_text(sites):
    pairs = [pair for pages in sites for pair in combinations(pages, 2)]
    shares = []
    for first, second in pairs:
        if is_copy(first, second):
            a, b = shingles(first), shingles(second)
            shares.append(len(a & b) / len(a | b) if a | b else 1.0)
    assert len(pairs) > 1_000
    assert len(shares) > 5
    assert min(shares) > 0.85


@pytest.mark.long
@pytest.mark.slow
def test_real_copies_survive_three_words(sites):
    draw = random.Random(0)
    long = [page for pages in sites for page in pages if len(tokenise(page.text)) > 400]
    copies = 0
    for original in long:
        words = tokenise(original.text)
        changed = list(words)
        for place in draw.sample(range(len(words)), 3):
            changed[place] = draw.choice(WORDS)
        copies += is_copy(page(" ".join(words)), page(" ".join(changed), "http://b.test/"))
    assert len(long) > 100
    assert copies > 0.97 * len(long)


@pytest.mark.long
def test_few_real_pages_are_put_together_from_other_sites():
    if not PAGES.exists():
        pytest.skip("needs shared/data/pages.jsonl.xz")
    memory, known, hosts, echoes = Memory(), Duplicates(), {}, 0
    with lzma.open(PAGES, "rt", encoding="utf-8") as lines:
        for number, record in enumerate(map(json.loads, lines)):
            real = read_page(record["html"], f"http://{number}.test/", language=False)
            host = record["host"] or f"{number}.test"
            said = memory.note(fingerprint(real), hosts.setdefault(host, len(hosts)))
            echoes += known.add(fingerprint(real)) and said.is_echo
    assert 0 < echoes <= 30
