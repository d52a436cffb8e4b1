"""`tres answer`, `tres pack` and `tres rejudge` on the topic of a crawl."""

import io
import json

import pytest
from conftest import command
from recorded_run import META, crawl_of
from soup import FOOD, OTHER, lines_of

from tres_scrapy.page.kind import fingerprint
from tres_scrapy.page.text import read_page
from tres_scrapy.report.record_writer import Writer
from tres_scrapy.topic.explanation import topic_reason
from tres_scrapy.topic.keyword import KeywordSet
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.topic_folder import TopicFolder, read_answers
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


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        command(*arguments)
    return end.value.code, capsys.readouterr().out


def test_replies_become_answers(run, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nwhat\nn\n"))
    code, said = call(capsys, "answer", run)
    assert (code, said.count("P(relevant)")) == (0, 2)  # the other pages are like these two
    assert "2 answers added to" in said
    assert "learned from 12 pages and 2 answers" in said  # the crawl has ended
    answers, _ = read_answers(run.with_suffix(".topic") / "answers.txt")
    assert list(answers.values()) == [True, False]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert not any(url in call(capsys, "answer", run)[1] for url in answers)


def test_answers_by_options(run, capsys):
    call(capsys, "answer", run, "--yes", "http://h1.test/", "--no", "http://h0.test/")
    answers, _ = read_answers(run.with_suffix(".topic") / "answers.txt")
    assert answers == {"http://h1.test/": True, "http://h0.test/": False}
    code, _ = call(capsys, "answer", run, "--yes", "http://h1.test", "--no", "http://x.test/")
    assert "http://x.test/ is not a page that the crawl can learn from" in str(code)
    assert read_answers(run.with_suffix(".topic") / "answers.txt")[0] == answers
    both = call(capsys, "answer", run, "--yes", "http://h2.test", "--no", "http://h2.test/")
    assert both[0] == 2
    assert read_answers(run.with_suffix(".topic") / "answers.txt")[0] == answers


def test_running_crawl_learns_answers_itself(run, capsys):
    pack = run.with_suffix(".topic") / "pack" / "topic.toml"
    before = pack.read_bytes()
    with TopicFolder(run.with_suffix(".topic")).reserved():
        code, said = call(capsys, "answer", run, "--yes", "http://h1.test")
        assert (code, pack.read_bytes()) == (0, before)
        assert "The crawl runs: it learns" in said
    assert "12 pages and 1 answer;" in call(capsys, "rejudge", run)[1]
    assert pack.read_bytes() != before


def test_saved_pack_is_a_topic(run, capsys, tmp_path):
    arguments = ("pack", "save", "broth", run, "--models", tmp_path / "models")
    assert call(capsys, *arguments)[0] == 0
    pack = Pack.load(tmp_path / "models" / "broth")
    assert (pack.name, pack.threshold) == ("broth", 0.5)
    assert "exists: choose another name" in str(call(capsys, *arguments)[0])


def test_rejudged_pages_have_the_final_probability(run, capsys):
    code, said = call(capsys, "rejudge", run)
    assert (code, said.startswith("6 of 12 pages are relevant")) == (0, True)
    items = lines_of(run.with_name("soup.rejudged.jsonl"))
    assert all(item["final_probability"] >= 0.5 != item["probability"] for item in items)


def test_jobdir_or_output_is_enough_to_rejudge(run, capsys, monkeypatch, tmp_path):
    job = tmp_path / "jobs" / "soup"
    job.mkdir(parents=True)
    run.with_suffix(".topic").rename(job / "topic")
    output = {"output": str(run)}
    Writer.open(job / "tres.run", crawl_of(), META | output, {}, 1.0).close(2.0, "")
    monkeypatch.chdir(tmp_path)
    for given in (job, run):
        code, said = call(capsys, "rejudge", given)
        assert (code, said.startswith("6 of 12 pages are relevant")) == (0, True)
    monkeypatch.chdir(tmp_path.parent)
    assert "add --run JOBDIR" in str(call(capsys, "rejudge", run)[0])
    run.unlink()
    assert f"is not there: give its output, and --run {job}" in str(call(capsys, "rejudge", job)[0])


def test_answered_pages_follow_their_answers(run, capsys):
    """Wrong ones too: the user knows."""
    call(capsys, "answer", run, "--yes", "http://h0.test/", "--no", "http://h1.test/")
    call(capsys, "rejudge", run)
    urls = {item["url"] for item in lines_of(run.with_name("soup.rejudged.jsonl"))}
    assert "http://h0.test/" in urls
    assert "http://h1.test/" not in urls
    assert "You answered no" in str(
        topic_reason(TopicFolder(run.with_suffix(".topic")), "http://h1.test/")
    )


def test_answers_of_a_running_crawl_are_followed(run, capsys):
    with TopicFolder(run.with_suffix(".topic")).reserved():
        call(capsys, "answer", run, "--no", "http://h1.test/")
        assert "The crawl runs" in call(capsys, "rejudge", run)[1]
    urls = {item["url"] for item in lines_of(run.with_name("soup.rejudged.jsonl"))}
    assert urls
    assert "http://h1.test/" not in urls


def test_output_is_not_judged_in_place(run, capsys):
    before = run.read_bytes()
    code, _ = call(capsys, "rejudge", run, "-o", run.parent / "." / run.name)
    assert "is the output itself: give another file" in str(code)
    assert run.read_bytes() == before
    code, _ = call(capsys, "rejudge", run.parent / "no.jsonl", "--run", run)
    assert "no.jsonl' does not exist: give the output or JOBDIR of a crawl" in str(code)


def test_topic_without_a_relevant_page_is_saved_with_a_warning(run, capsys, tmp_path):
    call(capsys, "answer", run, "--no", "http://h1.test/")
    code, said = call(capsys, "pack", "save", "food", run, "--models", tmp_path / "models")
    assert code == 0
    assert "All answers were no" in said
    code, _ = call(capsys, "pack", "save", "a/b", run)
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
    empty = tmp_path / "a.jsonl"
    empty.touch()
    for arguments in (
        ("answer", tmp_path),
        ("pack", "save", "a", tmp_path),
        ("rejudge", empty),
    ):
        assert "has no topic that learns" in str(call(capsys, *arguments)[0])
    code, _ = call(capsys, "answer", tmp_path / "no")
    assert "no' does not exist" in str(code)
