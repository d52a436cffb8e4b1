from types import SimpleNamespace

import pytest
from twisted.python.failure import Failure

from tres_scrapy.answerer.answer import AnswererError
from tres_scrapy.answerer.asking import Asking
from tres_scrapy.extensions.asking import AskAnswerer
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.topic.topic_folder import TopicFolder
from tres_scrapy.url.message import TresError


def test_failing_answerer_is_given_up(caplog):
    extension = AskAnswerer(None, SimpleNamespace(name="a:b"), 50)
    for _ in range(3):
        extension._fail(Failure(AnswererError("answerer 'a:b' ended")))
    said = [record.getMessage() for record in caplog.records]
    assert said == ["answerer 'a:b' ended"] * 2 + ["answerer 'a:b' ended; it is not asked any more"]


@pytest.mark.parametrize(
    ("pages", "expected"), [(500, [12, 33, 90, 250]), (None, [12, 18, 27, 40]), (20, [12, 13, 14])]
)
def test_last_questions_come_at_half_of_the_pages(monkeypatch, pages, expected):
    extension = AskAnswerer(None, SimpleNamespace(name="a:b"), 20, pages)
    session = SimpleNamespace(crawl=SimpleNamespace(pages=0))
    monkeypatch.setattr(CrawlSession, "of", lambda crawler: session)
    extension._asking = asking = SimpleNamespace(left=20)
    asked = []

    def questions():
        asked.append(session.crawl.pages)
        asking.left -= 5
        return []

    asking.questions = questions
    for number in range(1, (pages or 500) + 1):
        session.crawl.pages = number
        extension.booked(None)
    assert asked[: len(expected)] == pytest.approx(expected, abs=3)


def test_success_forgives_failures(caplog):
    extension = AskAnswerer(None, SimpleNamespace(name="a:b"), 50)
    for _ in range(2):
        for _ in range(2):
            extension._fail(Failure(AnswererError("no")))
        extension._say(["5 questions"])
    assert "not asked any more" not in caplog.text


def test_bug_shows_its_traceback_and_ends_it(caplog):
    extension = AskAnswerer(None, SimpleNamespace(name="a:b"), 50)
    extension._fail(Failure(KeyError("url")))
    assert "KeyError" in caplog.text
    assert extension._failures >= 3


def test_unreadable_answers_are_named_once(caplog, tmp_path):
    folder = TopicFolder(tmp_path)
    folder.write_questions([])
    folder.answers.mkdir()
    session = SimpleNamespace(crawl=SimpleNamespace(pages=100))
    crawler = SimpleNamespace(get_extension=lambda kind: session)
    extension = AskAnswerer(crawler, SimpleNamespace(name="a:b"), 50)
    extension._asking = Asking(folder, None, None, 50)
    for pages in (100, 200, 400):
        session.crawl.pages = pages
        extension.booked(None)
    extension._fail(Failure(TresError("another")))
    assert [record.getMessage() for record in caplog.records] == [
        "Nothing is asked: answers 'answers.txt' cannot be read: it is a folder, not a file",
        "Nothing is asked: another",
    ]
    assert extension._failures == 0  # it is asked again when the file is right
