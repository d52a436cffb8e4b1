"""What spoke for a link, from the weights at its choice to words that people read."""

import numpy as np
import pytest
from linked_run import crawl_of, steps

from tres_scrapy.links.code import CODES, CueGroup, Fact, Names, coded, fact, url_codes, url_texts
from tres_scrapy.links.model import KNOWN, LinkEvidence
from tres_scrapy.run.reason import (
    PARTS_AGAINST,
    PARTS_FOR,
    LinkPart,
    fact_name,
    known_name,
    parts_of,
    phrase_of,
)

URL = "http://www.inn.test/soup/cs302.html"


def said(adds, url=URL, anchor=""):
    """Return a link, given what the numbers of its weights add beside its URL."""
    first = url_codes([url])[0].astype(np.int64)
    where = np.concatenate([first, np.array([*adds], dtype=np.int64)])
    values = np.concatenate([np.zeros(len(first)), [*adds.values()]]).astype(np.float32)
    return LinkEvidence(url, anchor, where, values)


def names_of(group, *texts):
    names = Names()
    names.learn(zip(coded(group, texts), texts, strict=True))
    return names


@pytest.fixture(scope="module")
def crawl():
    crawl = crawl_of(pages=80)
    list(steps(crawl))
    return crawl


def test_parts_add_up_to_the_logit(crawl):
    """All of the logit is told, except for what every fetched link has in common."""
    learner = crawl.policy.link_learner
    rows = crawl.store.pending_rows()[:20]
    logits = learner.model.estimate(learner.links(rows)).logit
    rest = [
        logit - learner.evidence(row).adds.sum()
        for row, logit in zip(rows.tolist(), logits, strict=True)
    ]
    assert rest == pytest.approx([rest[0]] * len(rest), abs=1e-4)


def test_said_is_the_same_for_rated_rows(crawl):
    learner = crawl.policy.link_learner
    rows = crawl.store.pending_rows()[:5]
    learner.rate(rows[1:])
    known = learner.evidence(int(rows[3]))
    learner.rate(rows[:1])
    again = learner.evidence(int(rows[3]))
    assert (known.url, known.anchor) == (again.url, again.anchor)
    np.testing.assert_array_equal(known.where, again.where)
    np.testing.assert_allclose(known.adds, again.adds, rtol=1e-5, atol=1e-6)


def test_url_part_is_a_whole_word():
    """Runs of three to five characters share what they add with the words that they touch."""
    link, texts = said({}), url_texts(URL)
    link.adds[[texts.index("sou"), texts.index("oup")]] = 0.5
    assert parts_of(link, Names()) == [LinkPart("url", "soup", 1.0)]
    link.adds[texts.index("t/s")] = 0.3
    parts = {part.text: part.adds for part in parts_of(link, Names())}
    assert parts == pytest.approx({"soup": 1.2, "test": 0.1})


def test_digits_of_a_url_are_shown():
    link = said({})
    link.adds[:] = 0.01
    words = {part.text for part in parts_of(link, Names())}
    assert "cs302" in words
    assert not any("$" in word or "/" in word for word in words)


def test_host_and_folder_are_named_by_the_url():
    link = said({})
    link.adds[-2:] = 1.0, -1.0
    found = parts_of(link, Names())
    assert found == [
        LinkPart("host", "www.inn.test", 1.0),
        LinkPart("host", "www.inn.test/soup/", -1.0),
    ]


def test_anchor_word_is_exact():
    """Another word with the same code must not stand for one that the anchor text has."""
    (code,) = coded(CueGroup.ANCHOR, ["soup"])
    names = Names()
    names.learn([(code, "engine")])
    assert parts_of(said({code: 1.0}, anchor="Tomato Soup!"), names)[0].text == "soup"


def test_strongest_parts_come_first():
    texts = [f"word{'abcdefghij'[number]}" for number in range(10)]
    codes = coded(CueGroup.AROUND, texts)
    adds = [0.9, -0.9, 0.3, -0.3, 0.8, -0.8, 0.7, -0.7, 0.6, 0.01]
    found = parts_of(said(dict(zip(codes, adds, strict=True))), names_of(CueGroup.AROUND, *texts))
    assert [part.adds for part in found] == [0.9, 0.8, 0.7, 0.6, -0.9, -0.8, -0.7]
    assert len(found) == PARTS_FOR + PARTS_AGAINST
    assert phrase_of(found) == (
        'around "worda" +0.9, around "worde" +0.8, around "wordg" +0.7, '
        'against: around "wordb" -0.9, around "wordf" -0.8'
    )


def test_facts_and_features_have_names():
    adds = {
        fact(Fact.IN_MENU): -0.5,
        fact(Fact.PAGE_PROBABILITY) + 7: 0.4,
        CODES + KNOWN.index("anchor_logit"): 1.5,
        CODES + KNOWN.index(7): -0.2,
    }
    assert phrase_of(parts_of(said(adds), Names())) == (
        "P(relevant) of the anchor text +1.5, page with P(relevant) 88 to 100 % +0.4, "
        "against: in menu -0.5, relevant share of the domain -0.2"
    )
    assert len({known_name(column) for column in range(len(KNOWN))}) == len(KNOWN)
    numbers = [*Fact, *range(Fact.PAGE_PROBABILITY, Fact.PAGE_PROBABILITY + 8)]
    assert len({fact_name(number) for number in numbers}) == len(set(numbers))


def test_unknown_word_is_called_so():
    (code,) = coded(CueGroup.HEADING, ["soup"])
    (part,) = parts_of(said({code: 1.0}), Names())
    assert part.label == "heading (not known)"


@pytest.mark.parametrize(
    ("group", "text", "label"),
    [
        ("url", "cs302", 'URL "cs302"'),
        ("anchor", "soup", 'anchor "soup"'),
        ("page", "/menu", 'page URL "menu"'),
        ("page", "menu", 'page title "menu"'),
        ("fact", "in menu", "in menu"),
        ("feature", "known domain", "known domain"),
        ("new", "of a later version", "of a later version"),
    ],
)
def test_label_names_the_group(group, text, label):
    assert LinkPart(group, text, 1.0).label == label


def test_nothing_to_say_is_no_phrase():
    assert phrase_of([]) == ""
    assert phrase_of([LinkPart("anchor", "soup", -1.0)]) == 'against: anchor "soup" -1.0'
    assert phrase_of([LinkPart("anchor", "soup", 1.0)]) == 'anchor "soup" +1.0'


def test_shortest_url_has_no_parts():
    link = said({}, url="http://a/")
    assert [part.group for part in parts_of(link, Names())] == []
    link.adds[:] = 1.0
    assert {part.group for part in parts_of(link, Names())} == {"url", "host"}


def test_long_word_is_cut():
    url = f"http://a.test/{'x' * 100}"
    link = said({}, url=url)
    link.adds[:] = 0.1
    assert max(len(part.text) for part in parts_of(link, Names())) == 80
    anchor = "y" * 500
    (code,) = coded(CueGroup.ANCHOR, [anchor])
    assert parts_of(said({code: 1.0}, anchor=anchor), Names())[0].text == "y" * 80
