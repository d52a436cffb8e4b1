"""`tres answer`, `tres pack` and `tres export` on the topic of a crawl."""

import io
import json

import pytest
from conftest import command
from judged import told
from recorded_run import META, crawl_of, steps
from soup import FOOD, OTHER, lines_of

from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.text import read_page
from tres_scrapy.run.writer import Writer
from tres_scrapy.topic.explanation import topic_reason
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers, read_answers
from tres_scrapy.topic.topic_learner import TopicLearner, open_topic

KEYWORDS = KeywordSet.parse(["food", "cooking", "recipe", "soup", "bread"])


@pytest.fixture
def run(tmp_path):
    """The output of a crawl, with the folder of its topic beside it."""
    open_topic("soup", KEYWORDS, tmp_path / "soup.topic")
    learner = TopicLearner(tmp_path / "soup.topic", "soup", KEYWORDS)
    with (tmp_path / "soup.jsonl").open("w", encoding="utf-8") as file:
        for i, word in enumerate("abcdefghijkl"):
            html = (FOOD if i % 2 else OTHER).format(f"leek{word}")
            page = read_page(html, f"http://h{i}.test/")
            learner.keep(page, fingerprint(page))
            item = {"url": page.url, "title": page.title, "text": page.text, "probability": 0.6}
            file.write(json.dumps(item) + "\n")
    learner.learn()
    return tmp_path / "soup.jsonl"


@pytest.fixture
def recorded(run):
    """The record of a crawl beside its output: each page was judged irrelevant at the time."""
    path, crawl = run.with_suffix(".run"), crawl_of(pages=12)
    writer = Writer.open(
        path, crawl, {**META, "started": "20260101T000000.000000", "output": str(run)}, {}, 100.0
    )
    texts = [(FOOD if n % 2 else OTHER).format(f"leek{n}") for n in range(20)]
    for booking, text in zip(steps(crawl), texts, strict=False):
        writer.note(told(booking, "", text, 0.1), 100.0)
    writer.close(200.0, "page_limit")
    return path


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        command(*arguments)
    said = capsys.readouterr()
    return end.value.code, said.out, said.err


def exported(record, capsys):
    """Return the pages that `tres export` writes."""
    call(capsys, "export", "--run", record, "-o", record.with_name("pages.jsonl"))
    return lines_of(record.with_name("pages.jsonl"))


def test_replies_become_answers(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nwhat\nn\n"))
    code, said, _ = call(capsys, "answer", run)
    assert (code, said.count("P(relevant)")) == (0, 2)  # the other pages are like these two
    assert "2 answers added to" in said
    assert "learned from 12 pages and 2 answers" in said  # the crawl has ended
    answers = read_answers(run.with_suffix(".topic") / "answers.txt")
    assert list(answers.values()) == [True, False]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert not any(url in call(capsys, "answer", run)[1] for url in answers)


@pytest.mark.long
@pytest.mark.slow
def test_program_answers_for_a_finished_crawl(run, capsys, monkeypatch, loaded_python):
    function = "def judge(pages):\n    return [('soup' in page.text, 'a word') for page in pages]\n"
    (run.parent / "own_answers.py").write_text(function, encoding="utf-8")
    monkeypatch.syspath_prepend(run.parent)
    code, said, _ = call(capsys, "answer", run, "--answerer", "own_answers:judge")
    assert code == 0
    assert "2 questions: 1 yes, 1 no" in said
    assert "learned from 12 pages and 2 answers" in said
    answers = read_answers(run.with_suffix(".topic") / "answers.txt")
    assert set(answers.values()) == {False, True}
    assert "question" not in call(capsys, "answer", run, "--answerer", "own_answers:judge")[1]
    code, *_ = call(capsys, "answer", run, "--answerer", "no_such_module:f")
    assert "there is no module 'no_such_module'" in str(code)
    code, *_ = call(capsys, "answer", run, "--answerer", "maybe")
    assert "must be http, program COMMAND or" in str(code)


def test_answers_by_options(run, capsys):
    call(capsys, "answer", run, "--yes", "http://h1.test/", "--no", "http://h0.test/")
    answers = read_answers(run.with_suffix(".topic") / "answers.txt")
    assert answers == {"http://h1.test/": True, "http://h0.test/": False}
    code, *_ = call(capsys, "answer", run, "--yes", "http://h1.test", "--no", "http://x.test/")
    assert "http://x.test/ is not a page that the crawl can learn from" in str(code)
    assert read_answers(run.with_suffix(".topic") / "answers.txt") == answers
    both = call(capsys, "answer", run, "--yes", "http://h2.test", "--no", "http://h2.test/")
    assert both[0] == 2
    assert read_answers(run.with_suffix(".topic") / "answers.txt") == answers


def test_running_crawl_learns_answers_itself(run, recorded, capsys):
    pack = run.with_suffix(".topic") / "pack" / "topic.toml"
    before = pack.read_bytes()
    with TopicFolder(run.with_suffix(".topic")).reserved():
        code, said, _ = call(capsys, "answer", run, "--yes", "http://h1.test")
        assert (code, pack.read_bytes()) == (0, before)
        assert "The crawl runs: it learns" in said
        said = call(capsys, "answer", run, "--answerer", "builtins:list")[1]
        assert "Resume the crawl" not in said
    assert "12 pages and 1 answer;" in call(capsys, "export", "--run", recorded)[2]
    assert pack.read_bytes() != before


def test_saved_pack_is_a_topic(run, capsys, tmp_path):
    arguments = ("pack", "save", "broth", run, "--models", tmp_path / "models")
    assert call(capsys, *arguments)[0] == 0
    pack = Pack.load(tmp_path / "models" / "broth")
    assert (pack.name, pack.threshold) == ("broth", 0.5)
    assert "exists: choose another name" in str(call(capsys, *arguments)[0])


def test_topic_without_a_relevant_page_is_saved_with_a_warning(run, capsys, tmp_path):
    call(capsys, "answer", run, "--no", "http://h1.test/")
    code, said, _ = call(capsys, "pack", "save", "food", run, "--models", tmp_path / "models")
    assert code == 0
    assert "All answers were no" in said
    code, *_ = call(capsys, "pack", "save", "a/b", run)
    assert "the name 'a/b' must be letters, digits, - and _ only" in str(code)


def test_topic_that_hides_a_shipped_one_is_named(run, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = "use it instead of the topic food that TRES brings"
    assert said in call(capsys, "pack", "save", "food", run)[1]
    assert said not in call(capsys, "pack", "save", "broth", run)[1]


def test_topic_says_which_words_and_answers_count(run, capsys):
    folder = TopicFolder(run.with_suffix(".topic"))
    pages = [f"--{'yes' if i % 2 else 'no'}=http://h{i}.test/" for i in range(8)]
    call(capsys, "answer", run, *pages)
    reason = topic_reason(folder, "http://h9.test/")
    assert reason.probability > 0.5
    assert "soup" in dict(reason.given)
    assert reason.added
    assert not {*KEYWORDS.words} & {word for word, _ in reason.added}
    assert all(each.relevant == (each.adds > 0) for each in reason.answers)
    assert "found by the model" in str(reason)
    assert topic_reason(folder, "http://x.test/") is None


def test_run_without_topic_is_one_line(capsys, tmp_path):
    for arguments in (
        ("answer", tmp_path),
        ("pack", "save", "a", tmp_path),
    ):
        assert "has no topic that learns" in str(call(capsys, *arguments)[0])
    code, *_ = call(capsys, "answer", tmp_path / "no")
    assert "no' does not exist" in str(code)


def test_export_has_the_pages_that_the_topic_finds_now(recorded, capsys):
    found = exported(recorded, capsys)
    assert len(found) > 3
    assert all("soup" in each["text"] and each["probability"] >= 0.5 for each in found)


def test_exported_pages_follow_their_answers(run, recorded, capsys):
    """Wrong ones too: the user knows."""
    found = exported(recorded, capsys)
    answers = TopicFolder(run.with_suffix(".topic")).answers
    with TopicFolder(run.with_suffix(".topic")).reserved():  # a crawl that runs learns them itself
        add_answers(answers, {found[0]["final_url"]: False})
        assert exported(recorded, capsys) == found[1:]
        assert "The crawl runs" in call(capsys, "export", "--run", recorded)[2]
    call(capsys, "answer", run, "--yes", "http://h0.test/", "--no", "http://h1.test/")
    assert "You answered no" in str(
        topic_reason(TopicFolder(run.with_suffix(".topic")), "http://h1.test/")
    )
