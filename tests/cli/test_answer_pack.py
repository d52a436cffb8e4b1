"""Answers about the pages of a crawl with a trained pack, which correct what the pack says."""

import json
from contextlib import closing

import pytest
from judged import told
from recorded_run import META, crawl_of, record_poor, steps
from soup import FOOD, lines_of
from test_answer import call, exported

from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import open_to_write
from tres_scrapy.run.writer import Writer
from tres_scrapy.topic.topic_folder import TopicFolder


@pytest.fixture
def poor(tmp_path):
    """The record of a crawl whose pack calls half of both kinds of pages relevant."""
    path = tmp_path / "food.run"
    record_poor(path)
    with Record(path) as read, path.with_suffix(".jsonl").open("w", encoding="utf-8") as output:
        for page in read.pages():
            row = {"url": page.url, "fetched_at": "2026-01-02", "probability": page.probability}
            output.write(json.dumps(row) + "\n")
    return path


def pages_of(record, word):
    """Return the pages with a word in their text, whatever the crawl thought."""
    with Record(record) as read:
        found = [page for page in read.pages(0.0) if word in read.text(page).text]
    return [page.final_url or page.url for page in found]


def answered(record, capsys, count=4):
    """Answer yes about pages with a recipe, no about others; return what was said."""
    options = []
    for word, answer in (("recipe", "--yes"), ("parliament", "--no")):
        for url in pages_of(record, word)[:count]:
            options += [answer, url]
    code, said, err = call(capsys, "answer", record, *options)
    assert code == 0, (said, err)
    return said


def test_questions_alone_change_nothing(poor, capsys, monkeypatch):
    before = exported(poor, capsys)
    monkeypatch.setattr("builtins.input", lambda _: "q")
    code, said, _ = call(capsys, "answer", poor)
    assert (code, "P(relevant) 0.70, best" in said) == (0, True)
    assert exported(poor, capsys) == before
    assert TopicFolder(poor.with_suffix(".topic")).read_questions()


def test_answers_correct_the_pack(poor, capsys):
    said = answered(poor, capsys)
    assert "8 answers; by the answers, precision is" in said
    assert "food.jsonl has" in said
    wanted = set(pages_of(poor, "recipe"))
    found = {page["final_url"] for page in exported(poor, capsys)}
    assert found == wanted  # also pages without an answer that the pack missed
    with Record(poor) as read:
        output = [read.find(row["url"]) for row in lines_of(poor.with_suffix(".jsonl"))]
    assert {page.final_url or page.url for page in output} == wanted


def test_several_topics_are_corrected(poor, capsys):
    with closing(open_to_write(poor)) as file:
        file.execute("UPDATE meta SET value = 'food+sports' WHERE name = 'topic'")
    assert "8 answers; by the answers, precision is" in answered(poor, capsys)


def test_page_taken_out_comes_back(poor, capsys):
    url = read_urls(poor)[0]
    call(capsys, "answer", poor, "--no", url)
    assert url not in read_urls(poor)
    call(capsys, "answer", poor, "--yes", url)
    assert url in read_urls(poor)
    assert set(read_urls(poor)) == {page["url"] for page in exported(poor, capsys)}


def read_urls(record):
    return [row["url"] for row in lines_of(record.with_suffix(".jsonl"))]


def test_explanation_names_the_pack(poor, capsys):
    answered(poor, capsys)
    url = pages_of(poor, "recipe")[-1]
    assert "the trained pack" in call(capsys, "explain", poor, url)[1]


def test_audit_teaches_the_pack(poor, capsys, tmp_path):
    printed = call(capsys, "audit", poor, "--questions")[1]
    asked = [json.loads(line) for line in printed.splitlines()]
    lines = [f"{'yes' if 'recipe' in each['text'] else 'no'} {each['url']}\n" for each in asked]
    (tmp_path / "told.txt").write_text("".join(lines), encoding="utf-8")
    code, said, _ = call(capsys, "audit", poor, "--learn", "--answers", tmp_path / "told.txt")
    assert code == 0
    assert "20 answers; by the answers" in said
    assert {page["final_url"] for page in exported(poor, capsys)} == set(pages_of(poor, "recipe"))


def test_corrected_pack_is_not_saved(poor, capsys, tmp_path):
    answered(poor, capsys)
    code, *_ = call(capsys, "pack", "save", "better", poor, "--models", tmp_path)
    assert "correct a trained topic in this crawl alone" in str(code)


def test_page_that_was_not_fetched_is_refused(poor, capsys):
    code, *_ = call(capsys, "answer", poor, "--yes", "http://nowhere.test/")
    assert "not a page that the crawl can learn from" in str(code)


@pytest.mark.parametrize(
    ("facts", "settings", "said"),
    [
        (
            {"topic": "nothing"},
            {"TRES_TEXTS": "True"},
            "the pack 'nothing' of the crawl is missing",
        ),
        ({}, {"TRES_TEXTS": "False"}, "a crawl without texts in its record cannot learn"),
        ({"shards": "2"}, {"TRES_TEXTS": "True"}, "a crawl in shards cannot learn from answers"),
    ],
)
def test_refusals_in_one_line(tmp_path, capsys, facts, settings, said):
    path, crawl = tmp_path / "x.run", crawl_of(pages=12)
    writer = Writer.open(path, crawl, META | facts, settings, 100.0)
    for booking in steps(crawl):
        writer.note(told(booking, "", FOOD, 0.5), 100.0)
    writer.close(200.0, "page_limit")
    assert said in str(call(capsys, "answer", path)[0])
    assert not (tmp_path / "x.topic" / "pack").exists()
