import json

import pytest
from recorded_run import crawl_of, record

from tres_scrapy.live.answering import KEPT, Answering
from tres_scrapy.live.steering import ControlError
from tres_scrapy.report.record import Record
from tres_scrapy.topic.topic_folder import read_answers
from tres_scrapy.url.message import TresError

REFUSED = "Not a page that this crawl has fetched"


@pytest.fixture(scope="module")
def read(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "a.run"
    record(path, crawl_of("plain", pages=100))
    with Record(path) as read:
        yield read


@pytest.fixture
def file(tmp_path):
    return tmp_path / "a.answers.txt"


def test_answer_is_kept_with_its_text(read, file):
    page = next(page for page in read.last(200)[::-1] if page.kind == "page")
    answering = Answering(file, "Noted in")
    answering.note(page.url, "Soup", "hot\n")
    assert answering.answer(read, page.url, relevant=True) == f"Noted in {file}."
    answering.answer(read, page.url, relevant=False)
    assert file.read_text() == f"yes {page.url}\nno {page.url}\n"
    assert answering.given() == {page.url: False}
    texts = (file.parent / "a.answers.fetched.jsonl").read_text().splitlines()
    assert json.loads(texts[0]) == {"url": page.url, "title": "Soup", "text": "hot\n"}


def test_text_may_be_dropped_at_any_moment(read, file):
    page = next(page for page in read.last(200)[::-1] if page.kind == "page")
    answering = Answering(file, "Noted in")

    class Dropped(dict):
        def __contains__(self, url):
            return True

    answering._texts = Dropped()
    answering.answer(read, page.url, relevant=True)
    assert answering.given() == {page.url: True}


def test_only_fetched_pages_are_answered(read, file):
    failed = next(page for page in read.last(200)[::-1] if page.kind != "page")
    for url in (failed.url, "http://never.test/", "", "http://a.test/\nyes http://b.test/"):
        with pytest.raises(ControlError, match=REFUSED):
            Answering(file, "Noted in").answer(read, url, relevant=True)
    assert not file.exists()


def test_questions_are_answered_once(read, file):
    asked = [{"url": "http://a.test/"}, {"url": "http://b.test/ \nyes http://c.test/"}]

    def known(urls):
        if all(url in {each["url"] for each in asked} for url in urls):
            return list(urls)
        raise TresError("no such page")

    answering = Answering(file, "Learned from", lambda: asked, known)
    answering.answer(read, "http://a.test/", relevant=True)
    assert answering.questions() == asked[1:]
    with pytest.raises(ControlError, match=REFUSED):
        answering.answer(read, asked[1]["url"], relevant=True)
    page = next(page for page in read.last(200)[::-1] if page.kind == "page")
    with pytest.raises(ControlError, match=r"^no such page$"):
        answering.answer(read, page.url, relevant=True)
    assert read_answers(file) == {"http://a.test/": True}


def test_answers_of_two_files_count(read, file):
    page = next(page for page in read.last(200)[::-1] if page.kind == "page")
    others = file.with_name("mine.txt")
    others.write_text(f"no {page.url}\nyes http://b.test/\n")
    answering = Answering(file, "", known=list, others=others)
    answering.answer(read, page.url, relevant=True)
    assert answering.given() == {page.url: True, "http://b.test/": True}
    assert file.read_text() == f"yes {page.url}\n"


def test_topic_without_questions_asks_nothing(file):
    def none_yet():
        raise TresError("no questions yet")

    assert Answering(file, "Learned from", none_yet).questions() == []


def test_few_texts_are_held(file):
    answering = Answering(file, "")
    for i in range(KEPT + 5):
        answering.note(f"http://{i}.test/", "", "x")
    assert len(answering._texts) == KEPT
    assert "http://4.test/" not in answering._texts


def test_unwritable_answer_is_refused(read, tmp_path):
    page = next(page for page in read.last(200)[::-1] if page.kind == "page")
    with pytest.raises(ControlError, match="cannot be written: there is no such file"):
        Answering(tmp_path / "none" / "a.txt", "").answer(read, page.url, relevant=True)


def test_malformed_file_keeps_earlier_answers(file, caplog):
    answering = Answering(file, "")
    file.write_text("yes http://a.test/\n")
    assert answering.given() == {"http://a.test/": True}
    file.write_text("yes http://a.test/\nperhaps\n")
    assert answering.given() == {"http://a.test/": True}
    assert "line 2" in caplog.text
