from collections import Counter

import numpy as np
import pytest

from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.keyword_score import forms
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
