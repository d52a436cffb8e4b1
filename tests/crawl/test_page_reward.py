import random
from dataclasses import replace

import pytest
from judged import judged

from tres_scrapy.config.limit import ScopeOptions
from tres_scrapy.crawl.failure import BAD_DOCUMENT, SOFT_404
from tres_scrapy.crawl.verdict import Verdicts
from tres_scrapy.frontier.admission import Scope
from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.text import Page


def mark(text, url="http://a.test/"):
    return fingerprint(Page(url, "", text, ()))


WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrst"]
SOUP, STEW = mark("a soup of onions and bread"), mark("stew of beans with thyme", "http://b.test/")


def of(verdicts, mark=SOUP, probability=0.9, scope=None, *, site=0, **fields):
    page = judged(False, mark=mark, **fields)._replace(probability=probability)
    return verdicts.of(page, scope, site)


@pytest.mark.parametrize(("probability", "relevant"), [(0.39, False), (0.4, True), (1.0, True)])
def test_page_is_relevant_from_threshold(probability, relevant):
    assert of(Verdicts(0.4), probability=probability).relevant is relevant


def test_copy_is_irrelevant():
    verdicts = Verdicts(0.4)
    first, copy = of(verdicts), of(verdicts)
    assert (first.relevant, copy.on_topic, copy.is_copy, copy.relevant) == (True, True, True, False)
    assert of(verdicts, STEW).relevant


def test_page_put_together_from_other_sites_earns_nothing():
    verdicts = Verdicts(0.4)
    texts = [" ".join(random.Random(site).choices(WORDS, k=400)) for site in range(2)]
    assert all(of(verdicts, mark(text), site=site).relevant for site, text in enumerate(texts))
    pieces = mark(f"{texts[0][:900]} {texts[1][:900]}", "http://c.test/")
    echo = of(verdicts, pieces, site=2)
    assert (echo.is_copy, echo.relevant, echo.earns) == (False, True, False)
    assert verdicts.grade_of(echo) == 0
    again = mark(f"{texts[0][900:]} {texts[0][:300]}", "http://a.test/2")
    assert of(verdicts, again, site=0).earns  # a site may repeat itself
    is_copy, known = verdicts.compare(again, 0)
    assert is_copy
    assert known.is_stale


def test_copy_may_count_like_any_page():
    verdicts = Verdicts(0.4, detect_copies=False)
    assert [of(verdicts).relevant for _ in range(2)] == [True] * 2


def test_pages_of_interrupted_crawl_have_copies():
    verdicts = Verdicts(0.4)
    verdicts.compare(SOUP, 0)
    assert of(verdicts).is_copy


def test_missing_page_has_no_copies():
    verdicts = Verdicts(0.4)
    assert of(verdicts, is_missing=True) == SOFT_404
    assert of(verdicts, is_broken=True) == BAD_DOCUMENT
    assert of(verdicts).relevant


@pytest.mark.parametrize(
    ("kind", "rest"), [("wall_challenge", 60), ("wall_consent", 60), ("wall_login", None)]
)
def test_wall_is_a_failure(kind, rest):
    verdicts = Verdicts(0.4)
    wall = of(verdicts, wall=kind)
    assert (wall.kind, wall.retry_after, wall.ends_in_rest) == (kind, rest, rest is not None)
    assert of(verdicts).relevant, "a wall has no copies"


def test_grade_says_how_near_a_page_came():
    verdicts = Verdicts(0.4, detect_copies=False)
    pages = (of(verdicts, probability=p) for p in (0.0, 0.004, 0.2, 0.4, 0.9, 1.0))
    grades = [verdicts.grade_of(page) for page in pages]
    assert grades == sorted(grades)
    assert grades[0] == 0
    assert grades[1] == pytest.approx(0.08, abs=0.01)
    assert grades[3] == pytest.approx(0.5**0.5)
    assert grades[-1] <= 1


def test_page_that_cannot_be_relevant_has_no_grade():
    verdicts = Verdicts(0.4)
    assert verdicts.grade_of(of(verdicts, probability=0.3)) > 0
    assert verdicts.grade_of(of(verdicts, probability=0.3)) == 0, "a copy"


def test_hidden_page_earns_nothing():
    page = of(Verdicts(0.5))
    hidden = page._replace(page=replace(page.page, may_be_kept=False))
    assert hidden.on_topic
    assert not hidden.relevant


def test_page_in_another_language_earns_nothing():
    page = judged(False, mark=SOUP)._replace(probability=0.9)
    page = page._replace(page=replace(page.page, language="de"))
    scope = Scope.of(ScopeOptions(languages=("en",)))
    foreign = Verdicts(0.5).of(page, scope, 0)
    assert foreign.on_topic
    assert not foreign.relevant
