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
    assert [verdicts.of(0.9, SOUP) for _ in range(2)] == [Verdict(on_topic=True)] * 2


def test_pages_of_interrupted_crawl_have_copies():
    verdicts = Verdicts(0.4)
    verdicts.remember([SOUP])
    assert verdicts.of(0.9, SOUP).is_copy


def test_missing_page_has_no_copies():
    verdicts = Verdicts(0.4)
    assert verdicts.of(0.9, SOUP, is_missing=True) == SOFT_404
    assert verdicts.of(0.9, SOUP) == Verdict(on_topic=True)


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
