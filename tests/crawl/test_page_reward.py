import pytest

from tres_scrapy.crawl.failure import SOFT_404
from tres_scrapy.crawl.visit import Verdict, Verdicts, reward_of
from tres_scrapy.page.duplicate import fingerprint
from tres_scrapy.page.text import Page


def mark(text, url="http://a.test/"):
    return fingerprint(Page(url, "", text, ()))


SOUP, STEW = mark("a soup of onions and bread"), mark("stew of beans with thyme", "http://b.test/")


@pytest.mark.parametrize(("probability", "relevant"), [(0.39, False), (0.4, True), (1.0, True)])
def test_page_is_relevant_from_threshold(probability, relevant):
    assert Verdicts(0.4).of(probability, SOUP).relevant is relevant


def test_copy_is_irrelevant():
    verdicts = Verdicts(0.4)
    first, copy = verdicts.of(0.9, SOUP), verdicts.of(0.9, SOUP)
    assert (first.relevant, copy.on_topic, copy.is_copy, copy.relevant) == (True, True, True, False)
    assert verdicts.of(0.9, STEW).relevant


def test_copy_may_count_like_any_page():
    verdicts = Verdicts(0.4, detect_copies=False)
    first, second = verdicts.of(0.9, SOUP), verdicts.of(0.9, SOUP)
    assert first == second
    assert first.relevant


def test_pages_of_interrupted_crawl_have_copies():
    verdicts = Verdicts(0.4)
    verdicts.remember([SOUP])
    assert verdicts.of(0.9, SOUP).is_copy


def test_missing_page_has_no_copies():
    verdicts = Verdicts(0.4)
    assert verdicts.of(0.9, SOUP, is_missing=True) == SOFT_404
    verdict = verdicts.of(0.9, SOUP)
    assert isinstance(verdict, Verdict)
    assert verdict.relevant


def test_grade_says_how_near_a_page_came():
    grades = [Verdicts(0.4).of(p, SOUP).grade for p in (0.0, 0.004, 0.2, 0.399, 0.4, 0.9, 1.0)]
    assert grades == sorted(grades)
    assert grades[0] == 0
    assert grades[1] == pytest.approx(0.08, abs=0.01)
    assert grades[4] == pytest.approx(0.5**0.5)
    assert grades[-1] <= 1


def test_page_that_cannot_be_relevant_has_no_grade():
    verdicts = Verdicts(0.4)
    assert verdicts.of(0.3, SOUP).grade > 0
    assert verdicts.of(0.3, SOUP).grade == 0
    for reason in ("is_query", "is_hidden", "is_foreign"):
        assert Verdicts(0.4).of(0.9, SOUP, **{reason: True}).grade == 0


def test_answer_to_query_is_irrelevant():
    assert not Verdicts(0.4).of(0.9, SOUP, is_query=True).relevant


@pytest.mark.parametrize(
    ("relevant", "is_trusted", "is_query", "reward"),
    [
        (True, False, False, 1.0),
        (False, False, False, 0.0),
        (False, True, False, 1.0),
        (True, True, True, 0.0),
        (False, False, True, 0.0),
    ],
)
def test_reward_of_page(relevant, is_trusted, is_query, reward):
    assert reward_of(relevant, is_trusted=is_trusted, is_query=is_query) == reward


@pytest.mark.parametrize("reason", ["is_hidden", "is_foreign"])
def test_hidden_and_foreign_pages_earn_nothing(reason):
    verdict = Verdicts(0.5).of(0.9, SOUP, **{reason: True})
    assert isinstance(verdict, Verdict)
    assert verdict.on_topic
    assert not verdict.relevant
