from collections import Counter

import numpy as np
import pytest

from tres_scrapy.topic.fit import Bags
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_score import Keyword, forms, log_odds
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


# How often words occur in a text: 0, 1, 2 are a keyword in text, links and URL, 3, 4, 5 another.
BOTH = {0: 2, 2: 1, 3: 5, 5: 3}
IN_TEXT = {0: 2, 3: 5, 5: 4}
IN_URL = {2: 1, 3: 7, 5: 3}
NEITHER = {3: 7, 5: 4}


def worth_of_url(*texts):
    """Return what the keyword adds to the log odds of IN_URL among these and other texts."""
    rows = [*texts, *[NEITHER] * 9, IN_URL]
    parts = [(np.array([*row]), np.array([*row.values()], dtype=float)) for row in rows]
    keyword = Keyword(1.0, 0.001, [[0], [1], [2]])
    odds = log_odds(Bags.of(parts, 6), np.arange(6) % 3, [keyword], np.zeros(len(rows)))
    return odds[-1] - odds[-2]


def test_texts_tell_what_a_keyword_in_the_url_is_worth():
    with_texts, without = worth_of_url(*[BOTH] * 9), worth_of_url(*[IN_TEXT] * 9)
    assert with_texts > without + 1


def test_a_keyword_in_urls_of_other_texts_says_no_less_than_none():
    often = worth_of_url(*[IN_TEXT] * 9, *[IN_URL] * 9)
    assert often == pytest.approx(worth_of_url(*[IN_TEXT] * 9), abs=0.5)
    assert often > 0
