from itertools import product

import numpy as np

from tres_scrapy.topic.keyword_topic import PageWords
from tres_scrapy.topic.question import BEST, EDGE, change, questions

LETTERS = "abcdefghij"


def page(number, words, site="h.test"):
    return PageWords(f"http://{site}/{number}", "", "", dict.fromkeys(words.split(), 1))


# No two are alike: they share one word of four.
PAGES = [
    page(n, f"{3 * a} {3 * b} {a + b + a}") for n, (a, b) in enumerate(product(LETTERS, LETTERS))
]


def falling(pages):
    return np.linspace(1.0, 0.0, len(pages))


YES = {"http://h.test/elsewhere": True}


def test_only_the_best_are_asked_about_before_the_first_yes():
    for answers in ({}, {PAGES[0].url: False}):
        assert {each.why for each in questions(falling, PAGES, answers, 5)} == {BEST}
    assert [each.why for each in questions(falling, PAGES, {}, 10)] == [BEST] * 7 + [EDGE] * 3


def test_questions_are_the_best_and_the_unsure():
    asked = questions(falling, PAGES, YES, 5)
    assert [each.why for each in asked] == [BEST, BEST, EDGE, EDGE, EDGE]
    assert min(each.probability for each in asked[:2]) > 0.9
    assert all(abs(each.probability - 0.5) < 0.05 for each in asked[2:])


def test_number_of_questions_is_bounded():
    asked = questions(falling, PAGES, YES, 12)
    assert len(asked) == len({each.page.url for each in asked}) == 12
    assert [each.why for each in asked[5:7]] == [BEST, BEST]
    assert questions(falling, PAGES[:3], YES, 20)[2].why == EDGE
    assert questions(falling, [], {}, 20) == []


def test_no_question_is_like_another_or_an_answered_page():
    pages = [page(n, f"soup leek pea {'x' if n % 2 else 'y'}") for n in range(8)]
    pages += [page(n, f"court tax vote {'x' if n % 2 else 'y'}") for n in range(8, 16)]
    assert len(questions(falling, pages, {}, 5)) == 2
    (left,) = questions(falling, pages, {pages[0].url: True}, 5)
    assert "court" in left.page.words


def test_five_are_of_different_sites_if_there_are_enough():
    pages = [
        each._replace(url=f"http://{'big' if n % 10 else f's{n}'}.test/{n}")
        for n, each in enumerate(PAGES)
    ]
    sites = [each.page.url.split("/")[2] for each in questions(falling, pages, {}, 5)]
    assert len(set(sites)) == 5
    of_two = [each._replace(url=f"http://s{n % 2}.test/{n}") for n, each in enumerate(PAGES)]
    assert len(questions(falling, of_two, {}, 5)) == 5


def test_change_counts_both_ways():
    before, after = np.array([0.4, 0.5, 0.9, 0.1]), np.array([0.5, 0.49, 0.9, 0.8])
    assert change(before, after) == "2 pages more, 1 fewer"
