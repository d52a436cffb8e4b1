from types import SimpleNamespace

from twisted.python.failure import Failure

from tres_scrapy.answerer.answer import AnswererError
from tres_scrapy.extensions.asking import AskAnswerer


def test_failing_answerer_is_given_up(caplog):
    extension = AskAnswerer(None, SimpleNamespace(name="a:b"), 50)
    for _ in range(3):
        extension._fail(Failure(AnswererError("answerer 'a:b' ended")))
    said = [record.getMessage() for record in caplog.records]
    assert said == ["answerer 'a:b' ended"] * 2 + ["answerer 'a:b' ended; it is not asked any more"]


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
