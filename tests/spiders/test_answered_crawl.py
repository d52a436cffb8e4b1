"""Crawls from keywords whose questions a program answers."""

import os

import pytest
from soup import lines_of
from test_words_crawl import PAGES, arguments_in, soups  # noqa: F401

FUNCTIONS = """
def number(page):
    return int(page.url.split(".")[0].removeprefix("http://h"))
def honest(pages):
    assert all(page.topic == "soup: bread, cooking, food, recipe, soup" for page in pages)
    assert all(len(page.text) > 300 for page in pages if number(page) % 3 != 2)
    return [(False, "politics") if number(page) % 3 == 2 else (True, "soup") for page in pages]
def lies(pages):
    return [number(page) % 3 == 2 for page in pages]
def fail(pages):
    raise ValueError("no idea")
def hang(pages):
    import time
    time.sleep(1000)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_answers.py").write_text(FUNCTIONS, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return tmp_path


def crawled(scrapy, web, folder, function, *more):
    """Crawl with an answerer; return its log lines."""
    answerer = ("-a", f"answerer=own_answers:{function}")
    process = scrapy(*arguments_in(folder, *answerer, *more), pages=web)
    assert process.returncode == 0, process.stderr
    assert f"{PAGES + 1} pages" in process.stderr or f"{PAGES} pages" in process.stderr
    assert "Traceback" not in process.stderr
    return [line for line in process.stderr.splitlines() if "nswerer" in line]


@pytest.mark.long
@pytest.mark.slow
def test_program_answers_while_the_crawl_runs(scrapy, soups, own):  # noqa: F811
    said = crawled(scrapy, soups, own, "honest", "-s", "DOWNLOAD_DELAY=0.1")
    assert any("1 yes, 1 no" in line for line in said), said
    rows = lines_of(own / "job" / "topic" / "answered.jsonl")
    assert all(row["reason"] == ("soup" if row["relevant"] else "politics") for row in rows)
    answers = (own / "job" / "topic" / "answers.txt").read_text(encoding="utf-8")
    assert len(answers.splitlines()) == len(rows) >= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("fail", "ended with status 1: ValueError: no idea"),
        ("absent", "has no attribute 'absent'"),
        ("hang", None),
        ("lies", "(0 as the topic expected)"),
    ],
)
@pytest.mark.long
def test_crawl_goes_on_whatever_the_answerer_does(scrapy, soups, own, function, said):  # noqa: F811
    lines = crawled(scrapy, soups, own, function, "-s", "DOWNLOAD_DELAY=0.2")
    if said is None:
        assert lines == []
    else:
        assert any(said in line for line in lines), lines


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("maybe", "'maybe': must be http, program COMMAND or package.module:callable"),
        ("program 'x", "must be http, program COMMAND or package.module:callable"),
        ("no_such_module:f", "there is no module 'no_such_module'"),
        ("program no-such-program", "there is no program 'no-such-program'"),
        ("http", "OPENAI_BASE_URL is not set"),
    ],
)
@pytest.mark.long
def test_mistyped_answerer_is_refused(scrapy, tmp_path, monkeypatch, value, said):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    process = scrapy(*arguments_in(tmp_path, "-a", f"answerer={value}"))
    assert process.returncode == 1
    assert said in process.stderr
    assert "Traceback" not in process.stderr
