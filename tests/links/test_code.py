from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tres_scrapy.links.code import (
    ABSENT,
    BITS,
    CODES,
    GROUP_SIZE,
    MAX_CODES,
    MAX_URL_BYTES,
    PARTS,
    RUNS,
    CueGroup,
    Fact,
    RaggedArray,
    coded,
    fact,
    page_codes,
    silent,
    url_codes,
)
from tres_scrapy.page.place import Place
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic.keyword import KeywordSet

LISTS = st.lists(st.lists(st.integers(0, CODES - 1), max_size=4), max_size=6)
URLS = st.lists(
    st.builds(
        "{}//{}{}".format,
        st.sampled_from(["http:", "https:"]),
        st.text("ab.7\u00e9\ud800", max_size=9),
        st.text("aB/?=%09\u00e9", max_size=200),
    ),
    max_size=4,
)


def lists_of_urls(urls):
    """Return the codes of each URL as a list."""
    codes, owners = url_codes(urls)
    return [codes[owners == number].tolist() for number in range(len(urls))]


def lists_of(links):
    """Return the codes of each link as a list."""
    ends = np.cumsum(links.counts).tolist()
    return [
        links.codes[end - count : end].tolist()
        for end, count in zip(ends, links.counts.tolist(), strict=True)
    ]


def groups_of(codes):
    return [CueGroup(code >> BITS) for code in codes]


def code_of_run(run):
    """Hash some bytes one by one (FNV-1 with a sum), and spread the result."""
    number = run[0]
    for byte in run[1:]:
        number = (number * 0x01000193 + byte) % 2**32
    return number * 0x9E3779B1 % 2**32 >> (32 - BITS)


def codes_of_url(url):
    address = url.partition("//")[2]
    text = address.lower().encode("utf-8", "surrogatepass")
    if len(text) > MAX_URL_BYTES:
        third = MAX_URL_BYTES // 3
        text = text[:third] + text[len(text) - MAX_URL_BYTES + third :]
    text = b"/" + b"".join(b"0" if byte in b"0123456789" else bytes([byte]) for byte in text) + b"$"
    runs = [
        text[start : start + length] for length in RUNS for start in range(len(text) - length + 1)
    ]
    host, folder = address.partition("?")[0].split("/")[0], address.partition("?")[0]
    folder = folder[: folder.rfind("/")] if "/" in folder else ""
    places = [
        CueGroup.HOST * GROUP_SIZE + crc32(place.encode("utf-8", "surrogatepass")) % GROUP_SIZE
        for place in (host, folder + "/")
    ]
    return [*map(code_of_run, runs), *places]


@given(URLS)
def test_url_codes_equal_a_loop(urls):
    assert url_codes(urls)[0].dtype == np.uint32
    assert lists_of_urls(urls) == [codes_of_url(url) for url in urls]


def test_digits_and_scheme_say_nothing():
    urls = ["http://a.test/2024/soup?p=17", "https://a.test/1987/soup?p=20"]
    first, second = lists_of_urls(urls)
    assert groups_of(first[-2:]) == [CueGroup.HOST] * 2
    assert first[:-1] == second[:-1]
    assert first[-1] != second[-1], "the folder is read as it is"


@given(LISTS, st.data())
def test_take_equals_lists(lists, data):
    places = data.draw(st.lists(st.integers(ABSENT, len(lists) - 1), max_size=9))
    taken = RaggedArray.of(lists).take(places)
    assert lists_of(taken) == [[] if place == ABSENT else lists[place] for place in places]
    assert taken.codes.dtype == np.uint32


@pytest.mark.parametrize("group", MAX_CODES)
def test_groups_are_limited_and_apart(group):
    words = [f"word{number}" for number in range(100)]
    codes = coded(group, [*words, *words])
    assert codes == coded(group, words[: MAX_CODES[group]])
    assert groups_of(codes) == [group] * MAX_CODES[group]
    assert coded(group, ["soup", "soup"]) == coded(group, ["soup"])


def test_same_word_differs_by_group():
    codes = {coded(group, ["soup"])[0] for group in MAX_CODES}
    assert len(codes) == len(MAX_CODES)
    assert len({code % GROUP_SIZE for code in codes}) == 1


def page_of(place, anchor="Leek soup", title="Soups", url="http://a.test/food/soup?p=1"):
    return Page(url, title, "", (Link("http://b.test/", anchor),), places=(place,))


def codes_of(page, probability=0.3):
    (codes,) = lists_of(page_codes(page, probability, KeywordSet(["leek"])))
    return codes


def facts_of(codes):
    numbers = [code % GROUP_SIZE for code in codes if code >> BITS == CueGroup.FACT]
    return {Fact(number) for number in numbers if number < Fact.PAGE_PROBABILITY}


def test_page_codes_name_every_group():
    place = Place(("bread", "with"), ("our", "menu"))
    expected = [
        *coded(CueGroup.ANCHOR, ["leek", "soup"]),
        *coded(CueGroup.AROUND, ["bread", "with"]),
        *coded(CueGroup.HEADING, ["our", "menu"]),
        *coded(CueGroup.PAGE, ["soups", "/test", "/food", "/soup"]),
        fact(Fact.PAGE_PROBABILITY) + int(PARTS * 0.3),
    ]
    assert codes_of(page_of(place)) == expected


@pytest.mark.parametrize(
    ("page", "facts"),
    [
        (page_of(Place(("leek",))), {Fact.KEYWORD_AROUND}),
        (page_of(Place((), ("leek",))), {Fact.KEYWORD_IN_HEADING}),
        (page_of(Place(), title="Leek"), {Fact.KEYWORD_IN_TITLE}),
        (page_of(Place(), anchor=""), {Fact.NO_TEXT}),
        (page_of(Place()), set()),
    ],
)
def test_facts_hold_on_any_topic(page, facts):
    assert facts_of(codes_of(page)) == facts


@pytest.mark.parametrize(("probability", "part"), [(0.0, 0), (0.124, 0), (0.126, 1), (1.0, 7)])
def test_page_probability_has_eight_parts(probability, part):
    assert codes_of(page_of(Place()), probability)[-1] == fact(Fact.PAGE_PROBABILITY) + part


@given(st.lists(st.text("\ud800ab c", max_size=30), max_size=40), st.floats(0, 1))
def test_any_page_is_bounded(words, probability):
    place = Place(tuple(words), tuple(words))
    page = page_of(place, anchor=" ".join(words), title=" ".join(words))
    codes = codes_of(page, probability)
    assert len(codes) <= sum(MAX_CODES.values()) + len(Fact)
    assert all(0 <= code < CODES for code in codes)


def test_silent_links_have_no_codes():
    assert lists_of(silent(3)) == [[], [], []]
    assert lists_of(page_codes(Page("http://a.test/", "", "", ()), 0.5, KeywordSet(["leek"]))) == []
