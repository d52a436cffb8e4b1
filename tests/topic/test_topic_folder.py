import re
import resource
from pathlib import Path

import pytest

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.topic import topic_folder
from tres_scrapy.topic.keyword_topic import PageWords
from tres_scrapy.topic.learning_judge import LearningTask
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers, find_folder, read_answers
from tres_scrapy.url.message import TresError

PAGES = [PageWords(f"http://h.test/{n}", "Sóup", "lead", {"soup": n + 1}, n == 0) for n in range(3)]


def test_torn_page_is_dropped(tmp_path):
    folder = TopicFolder(tmp_path)
    for number, page in enumerate(PAGES, 1):
        folder.add_page(number, f"{number:02x}", page)
    file = tmp_path / "pages.jsonl"
    file.write_bytes(file.read_bytes()[:-7])
    for repair in (False, True):
        kept = list(folder.read_pages(repair=repair))
        assert kept == [(1, "01", PAGES[0]), (2, "02", PAGES[1])]
    folder.add_page(3, "03", PAGES[2])
    assert [page for *_, page in folder.read_pages()] == PAGES


@pytest.mark.parametrize("name", ["pages.jsonl", "answered.jsonl"])
def test_full_disk_leaves_whole_lines(tmp_path, name):
    folder, page = TopicFolder(tmp_path), PageWords("http://a.test/", "", "", {"soup": 1})

    def write(number):
        if name == "pages.jsonl":
            folder.add_page(number, "aa", page)
        else:
            folder.add_answered([{"url": f"http://{number}.test/"}])

    write(1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / name).stat().st_size + 9, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            write(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    write(3)
    found = folder.read_pages() if name == "pages.jsonl" else folder.read_answered()
    assert len(list(found)) == 2


def test_last_answer_about_a_page_counts(tmp_path):
    file = tmp_path / "answers.txt"
    assert read_answers(file) == {}
    file.write_text("# mine\nyes http://a.test/\n\nNo http://b.test/\n", encoding="utf-8")
    add_answers(file, {"http://a.test/": False})
    answers = {"http://a.test/": False, "http://b.test/": False}
    said = []
    assert read_answers(file, said.append) == answers
    assert said == [
        "answers 'answers.txt': yes and no for 1 URL, the first is http://a.test/; the last line "
        "about each counts"
    ]


@pytest.mark.parametrize(
    "line",
    [
        "maybe http://a.test/",
        "yes",
        "http://a.test/ yes",
        "yes not-a-url",
        "no ftp://a.test/",
        "\x1b[2J",
    ],
)
def test_malformed_answer_names_its_line(tmp_path, line):
    file, said = tmp_path / "answers.txt", []
    file.write_text(f"yes http://a.test/\n{line}\nno http://b.test/\n", encoding="utf-8")
    with file.open("ab") as binary:
        binary.write(b"\xff\xfe\n")
    found = read_answers(file, said.append)
    assert found == {"http://a.test/": True, "http://b.test/": False}
    (one,) = said
    assert re.fullmatch(
        r"answers 'answers.txt', line 2: .* must be `yes URL` or `no URL`, and 1 more: they are "
        "left out",
        one,
    )
    assert one.isprintable()


def test_topic_in_use_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_folder, "PATIENCE", 0.0)
    task = LearningTask(tmp_path / "pack", ReadingLimits(), keywords=("soup",), folder=tmp_path)
    with (
        TopicFolder(tmp_path).reserved(),
        pytest.raises(TresError, match="in use by another crawl"),
    ):
        task.load()


def test_run_without_a_topic_is_refused(tmp_path):
    with pytest.raises(TresError, match=r"food\.jsonl' does not exist"):
        find_folder(tmp_path / "food.jsonl")
    (tmp_path / "food.jsonl").touch()
    with pytest.raises(TresError, match="has no topic that learns"):
        find_folder(tmp_path / "food.jsonl")


def test_answers_are_added_after_an_open_line(tmp_path):
    file = tmp_path / "answers.txt"
    file.write_text("yes http://a.test/")
    add_answers(file, {"http://b.test/": False})
    assert read_answers(file) == {"http://a.test/": True, "http://b.test/": False}


def test_folder_is_found_from_within(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TresError, match="has no topic that learns"):
        find_folder(Path())
