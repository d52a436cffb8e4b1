from collections import Counter

import numpy as np
import pytest

from tres_scrapy.topic.fit import Bags
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_score import (
    BY_ITSELF,
    SHARPNESS,
    Keyword,
    forms,
    log_odds,
    url_worth,
)
from tres_scrapy.topic.keyword_topic import KeywordTopic, PageWords


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("plants", "plant"),
        ("plant", "plants"),
        ("cooking", "cook"),
        ("recipe", "recipes"),
        ("bakeries", "bakery"),
        ("planning", "plans"),
        ("coaching", "coaches"),
    ],
)
def test_inflections_are_forms(one, other):
    assert other in forms(one)


@pytest.mark.parametrize(("one", "other"), [("wine", "winter"), ("meat", "meath"), ("gas", "ga")])
def test_other_words_are_no_forms(one, other):
    assert other not in forms(one)


def filler(number):
    return Counter({f"other{number}{letter}": 2 for letter in "abcdefghij"})


@pytest.mark.parametrize("word", ["zorgles", "link:zorgle", "url:zorgle"])
def test_keywords_count_in_each_field(word):
    topic = KeywordTopic.in_english(KeywordSet.parse(["zorgle"]))
    pages = [PageWords(f"http://h.test/{n}", "", "", filler(n)) for n in range(20)]
    pages[3] = pages[3]._replace(words=filler(3) + Counter({word: 3}))
    assert int(np.argmax(topic.fit(pages, {}).judge(pages))) == 3


def worth(likely, others, *, strange=0.0):
    """Return what a keyword in the URL is worth after 100 likely pages and 100 others.

    Of these, so many have one. `strange` is added to the log odds of all.
    """
    in_url = np.arange(200) % 100 < np.repeat([likely, others], 100)
    return url_worth(in_url, np.repeat([4.0, -4.0], 100) + strange)


def test_a_keyword_in_the_url_is_worth_more_the_more_likely_pages_have_one():
    found = [worth(likely, 10) for likely in (30, 60, 90)]
    assert found == sorted(found)
    assert found[0] > 0
    assert found[-1] == pytest.approx(SHARPNESS * np.log(0.876 / 0.137) - BY_ITSELF, abs=0.05)


@pytest.mark.parametrize(("likely", "others"), [(0, 0), (50, 50), (10, 90), (60, 50), (100, 100)])
def test_a_keyword_in_the_url_is_worth_nothing_if_others_have_one_as_often(likely, others):
    assert worth(likely, others) == 0.0


def test_a_page_or_two_make_no_keyword_in_the_url_worth_much():
    odds = np.where(np.arange(100) == 0, 3.5, -3.5)
    assert url_worth(np.arange(100) < 2, odds) + odds[1] < 0


@pytest.mark.parametrize("strange", [800.0, -800.0])
def test_pages_that_are_all_likely_or_not_tell_nothing(strange):
    assert worth(50, 50, strange=strange) == 0.0


def test_a_keyword_in_the_url_adds_its_worth():
    both, neither, in_url = {0: 2, 2: 1, 3: 5, 5: 3}, {3: 7, 5: 4}, {2: 1, 3: 7, 5: 3}
    rows = [*[both] * 90, *[neither] * 90, in_url]
    parts = [(np.array([*row]), np.array([*row.values()], dtype=float)) for row in rows]
    keyword = Keyword(1.0, 0.001, [[0], [1], [2]])  # word 0 of a text, 1 of links, 2 of a URL
    odds = log_odds(Bags.of(parts, 6), np.arange(6) % 3, [keyword], np.zeros(len(rows)))
    has = np.arange(181) % 180 < 90
    without = np.where(np.arange(181) < 90, odds[0], odds[-2])
    assert odds[-1] - odds[-2] > url_worth(has, without) > 1
