"""`tres audit`: pages drawn by chance, answered by a person or a program."""

import io
import json
from contextlib import closing

import pytest
from recorded_run import crawl_of, record
from test_answer import call, exported, recorded, run

from tres_scrapy.report.audit import HALVES, Audit
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import open_to_write
from tres_scrapy.topic.topic_folder import add_answers, read_answers

__all__ = ["recorded", "run"]  # fixtures


@pytest.fixture
def trained(tmp_path):
    """The record of a crawl with a trained topic."""
    path = tmp_path / "food.run"
    record(path, crawl_of(pages=60))
    return path


def questions_of(path, capsys, *more):
    code, said, err = call(capsys, "audit", path, "--questions", *more)
    assert code == 0, err
    return [json.loads(line) for line in said.splitlines()]


def headline_of(path):
    with Record(path) as read:
        return render(read).partition("95 % intervals")[0]


def test_program_answers_and_the_report_says_so(trained, capsys, tmp_path):
    assert "judged relevant by the crawl itself (not checked)." in headline_of(trained)
    asked = questions_of(trained, capsys)
    assert len(asked) == 20
    assert asked[0].keys() == {"url", "title", "text"}  # not what the crawl thinks
    with Record(trained) as read:
        output = {page.final_url or page.url for page in read.pages()}
    answers = tmp_path / "answers.txt"
    lines = [f"{'yes' if each['url'] in output else 'no'} {each['url']}\n" for each in asked]
    answers.write_text("".join(lines[1:]), encoding="utf-8")
    code, said, _ = call(capsys, "audit", trained, "--answers", answers)
    assert code == 0
    assert "19 of 20 pages answered" in said
    assert questions_of(trained, capsys) == asked[:1]
    word, url = lines[0].split()
    code, said, _ = call(capsys, "audit", trained, f"--{word}", url)
    assert "20 of 20 pages answered" in said
    assert "Precision of the output: 100 % (" in said
    assert "Recall, of the relevant pages fetched: 100 % (" in said
    assert "checked by 20 pages drawn by chance: 100 % (" in headline_of(trained)


def test_person_answers(trained, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\nwhat\nn\ns\nq\n"))
    code, said, _ = call(capsys, "audit", trained)
    assert code == 0
    assert said.count(" of 20: ") == 4
    assert "P(relevant)" not in said
    assert "2 of 20 pages answered" in said
    assert list(Audit.read(trained).answers.values()) == [True, False]


def test_more_pages_keep_the_answers(trained, capsys):
    few = {each["url"] for each in questions_of(trained, capsys, "--pages", "5")}
    assert len(few) == 5
    call(capsys, "audit", trained, *(word for url in few for word in ("--yes", url)))
    assert questions_of(trained, capsys, "--pages", "5") == []
    many = questions_of(trained, capsys, "--pages", "30")
    assert not few.intersection(each["url"] for each in many)
    assert len(many) == 25
    assert len(Audit.read(trained).answers) == 5
    assert len(questions_of(trained, capsys, "--again")) == 20


def test_page_that_was_not_drawn_is_refused(trained, capsys):
    said, *_ = call(capsys, "audit", trained, "--yes", "http://other.test/")
    assert "http://other.test/ is not among the pages drawn: `--questions` prints them" in said
    said, *_ = call(capsys, "audit", trained, "--learn")
    assert "a crawl without texts in its record cannot learn" in said


def test_answers_are_learned_only_if_asked(recorded, run, capsys):
    before = exported(recorded, capsys)
    asked = questions_of(recorded, capsys)
    assert 0 < len(before) < len(asked)
    answers = run.with_suffix(".topic") / "answers.txt"
    output = {each["url"] for each in before}
    chosen = [each for each in asked if each["url"] in output][:4]
    told = [word for each in chosen for word in ("--no", each["url"])]
    call(capsys, "audit", recorded, *told)
    assert not answers.exists()
    assert exported(recorded, capsys) == before
    code, _, err = call(capsys, "audit", recorded, *told, "--learn")
    assert code == 0, err
    assert read_answers(answers) == {each["url"]: False for each in chosen}
    _, _, err = call(capsys, "audit", recorded, "--questions")
    assert "The output has changed since its audit" in err


@pytest.mark.long
def test_report_cites_no_audit_of_an_earlier_output(recorded, run, capsys):
    with Record(recorded) as read:
        urls = [page.url for page in read.pages(0.0)]
    add_answers(run.with_suffix(".topic") / "answers.txt", dict.fromkeys(urls[:6], True))
    asked = questions_of(recorded, capsys)
    told = [word for each in asked for word in ("--no", each["url"])]
    call(capsys, "audit", recorded, *told)
    assert "pages drawn by chance" in headline_of(recorded)
    code, _, err = call(capsys, "audit", recorded, *told, "--learn")
    assert code == 0, err
    assert "(not checked since the output has changed)" in headline_of(recorded)


def test_other_page_is_drawn_for_one_that_was_forgotten(trained, capsys):
    asked = questions_of(trained, capsys)
    before = Audit.read(trained)
    row = next(row for row, stratum in before.drawn if stratum >= HALVES)  # not of the output
    with closing(open_to_write(trained)) as file:
        file.execute("DELETE FROM page WHERE row = ?", (row,))
    again = questions_of(trained, capsys)
    assert len(again) == len(asked)
    assert row not in {row for row, _ in Audit.read(trained).drawn}


def test_report_cites_no_audit_of_other_pages(trained, capsys):
    asked = questions_of(trained, capsys)
    call(capsys, "audit", trained, *(word for each in asked for word in ("--no", each["url"])))
    assert "pages drawn by chance" in headline_of(trained)
    with Record(trained) as read:
        output = {page.row for page in read.pages()}
    drawn = [row for row, _ in Audit.read(trained).drawn if row not in output]
    changed = "(not checked since the output has changed)"
    with closing(open_to_write(trained)) as file:
        file.execute("DELETE FROM page WHERE row = ?", drawn[:1])
    assert changed in headline_of(trained)
    questions_of(trained, capsys)
    assert changed not in headline_of(trained)
    with closing(open_to_write(trained)) as file:  # as a resumed crawl that found a page
        file.execute("UPDATE page SET relevant = 1 WHERE row = ?", drawn[1:2])
    assert changed in headline_of(trained)


def test_run_without_an_output_is_refused(tmp_path, capsys):
    path = tmp_path / "food.run"
    record(path, crawl_of(pages=1))
    said, *_ = call(capsys, "audit", path)
    assert "no page of the output can be checked" in said
