"""Questions of a topic, put to an answerer."""

import json

import pytest
from judged import told
from recorded_run import META, crawl_of, steps

from tres_scrapy.answerer.answer import Answer, AnswererError
from tres_scrapy.answerer.asking import Asking
from tres_scrapy.run.writer import Writer
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers, read_answers
from tres_scrapy.topic.topic_learner import open_topic


class Oracle:
    """Answers by `reply`; `asked` are the pages that it saw."""

    def __init__(self, reply):
        self.reply = reply
        self.asked = []

    def ask(self, pages):
        self.asked += pages
        return [self.reply(page) for page in pages]


@pytest.fixture
def folder(tmp_path):
    keywords = KeywordSet.parse(["soup", "bread", "green tea"])
    open_topic("soup", keywords, tmp_path / "a.topic")
    return TopicFolder(tmp_path / "a.topic")


def write_questions(folder, *probabilities):
    rows = [
        {"url": f"http://h{i}.test/", "probability": p, "title": "t", "text": f"beginning {i}"}
        for i, p in enumerate(probabilities)
    ]
    folder.questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def ask_all(asking):
    said = []
    while questions := asking.questions():
        said += asking.ask(questions)
    return said


def test_five_at_a_time_and_none_twice(folder):
    write_questions(folder, *[0.9] * 12)
    oracle = Oracle(lambda page: Answer(None if page.url == "http://h1.test/" else True, "warm"))
    asking = Asking(folder, oracle, None, 12)
    assert [each["url"] for each in asking.questions()] == [f"http://h{i}.test/" for i in range(5)]
    said = ask_all(asking)
    assert len(oracle.asked) == 12
    assert said[0].startswith("5 questions: 4 yes, 0 no, 1 without an answer (4 as the topic exp")
    assert "yes to http://h0.test/: warm" in said[0]
    assert "http://h1.test/" not in read_answers(folder.answers)
    assert len(read_answers(folder.answers)) == 11
    assert Asking(folder, oracle, None, 9).questions() == []  # not the one without an answer either
    assert oracle.asked[0].topic == "soup: bread, soup, green tea"


def test_number_of_pages_is_bounded(folder):
    write_questions(folder, *[0.9] * 12)
    oracle = Oracle(lambda page: Answer(True))
    ask_all(Asking(folder, oracle, None, 7))
    assert len(oracle.asked) == 7
    assert Asking(folder, oracle, None, -2).questions() == []


def test_person_counts_more(folder):
    write_questions(folder, 0.9, 0.1)

    def reply(page):
        add_answers(folder.answers, {"http://h0.test/": False})  # meanwhile
        return Answer(True)

    ask_all(Asking(folder, Oracle(reply), None, 5))
    assert read_answers(folder.answers) == {"http://h0.test/": False, "http://h1.test/": True}


def test_kill_between_two_files_loses_no_answer(folder, monkeypatch):
    def die(rows):
        raise KeyboardInterrupt

    write_questions(folder, 0.9)
    monkeypatch.setattr(folder, "add_answered", die)
    with pytest.raises(KeyboardInterrupt):
        ask_all(Asking(folder, Oracle(lambda page: Answer(True)), None, 5))
    assert read_answers(folder.answers) == {"http://h0.test/": True}
    assert Asking(folder, None, None, 5).questions() == []


def test_failure_writes_nothing(folder):
    write_questions(folder, 0.9)

    def fail(page):
        raise AnswererError("no")

    with pytest.raises(AnswererError):
        ask_all(Asking(folder, Oracle(fail), None, 5))
    assert not folder.answers.exists()
    assert folder.read_answered() == []


@pytest.mark.parametrize(
    ("reply", "doubt"),
    [
        (lambda p: True, "all 10 answers are yes: check the answerer"),
        (lambda p: False, "all 10 answers are no: check the answerer"),
        (lambda p: p < 0.5, "its answers contradict the keywords"),
        (lambda p: p > 0.5, ""),
    ],
)
def test_doubtful_answers_are_named_once(folder, reply, doubt):
    chances = [0.9, 0.2, 0.8, 0.3, 0.7, 0.1] * 3
    write_questions(folder, *chances)
    of = {f"http://h{i}.test/": p for i, p in enumerate(chances)}
    said = ask_all(Asking(folder, Oracle(lambda page: Answer(reply(of[page.url]))), None, 18))
    assert [line for line in said if "questions: " not in line and "question: " not in line] == [
        line for line in said if doubt and line.startswith(doubt)
    ]
    assert sum(line.startswith(doubt) for line in said if doubt) == bool(doubt)


def test_pages_have_their_whole_text(folder, tmp_path):
    path, crawl = tmp_path / "a.run", crawl_of(pages=3)
    writer = Writer.open(path, crawl, META, {}, 100.0)
    bookings = list(steps(crawl))
    for booking in bookings:
        writer.note(told(booking, "", "<p>" + "leek soup " * 90, 0.1), 100.0)
    writer.close(200.0, "page_limit")
    url = bookings[0].decision.url
    rows = [{"url": url, "probability": 0.5, "title": "t", "text": "beginning"}]
    rows += [{**rows[0], "url": "http://gone.test/"}]
    folder.questions.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    oracle = Oracle(lambda page: Answer(True))
    ask_all(Asking(folder, oracle, path, 5))
    assert [page.text.count("leek") for page in oracle.asked] == [90, 0]


def test_torn_line_is_left_out(folder):
    folder.add_answered([{"url": "http://a.test/", "relevant": True, "reason": ""}])
    with folder.answered.open("a") as file:
        file.write('{"url": "http://b.te')
    assert [each["url"] for each in folder.read_answered()] == ["http://a.test/"]
