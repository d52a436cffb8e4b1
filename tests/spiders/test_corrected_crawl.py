"""Crawls with a trained topic that answers correct while they run."""

import pytest
from conftest import command as tres
from conftest import served
from test_words_crawl import KILLED, PAGES, add_soups, found_in, lines_of, pack_of, soups

from tres_scrapy.export.run_export import pages_of
from tres_scrapy.export.topic_view import topic_view
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import NAME

__all__ = ["soups"]  # fixtures


def arguments_in(directory, *more):
    return [
        *("crawl", "tres", "-a", "topic=food", "-a", "seed=http://h0.test/"),
        *("-a", f"output={directory / 'items.jsonl'}", "-s", f"JOBDIR={directory / 'job'}"),
        *("-s", "CONCURRENT_REQUESTS=1", "-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0"),
        *("-a", "report=0", *more),
    ]


def answers_in(directory):
    """Say that soup is not relevant and the others are, of which the pack knows nothing."""
    file = directory / "mine.txt"
    lines = [f"{'yes' if i % 3 == 2 else 'no'} http://h{i}.test/\n" for i in range(6)]
    file.write_text("".join(lines), encoding="utf-8")
    return "-a", f"answers={file}"


def log_of(process):
    assert process.returncode == 0, process.stderr
    assert "Traceback" not in process.stderr
    return process.stderr


@pytest.mark.long
def test_crawl_without_answers_keeps_nothing(scrapy, soups, tmp_path):
    said = log_of(scrapy(*arguments_in(tmp_path), pages=soups))
    assert "Topic: " not in said
    assert not (tmp_path / "job" / "topic").exists()
    assert len(found_in(tmp_path)) == PAGES * 2 // 3


@pytest.mark.long
def test_answers_correct_the_output(scrapy, soups, tmp_path):
    said = log_of(scrapy(*arguments_in(tmp_path, *answers_in(tmp_path)), pages=soups))
    assert "Topic: learned from 1 page and 1 answer" in said
    assert "6 answers; by the answers, precision is" in said
    assert "taken out)" in said
    with Record(tmp_path / "job" / NAME) as record:
        final = sorted(page["url"] for page in pages_of(record, view=topic_view(record)))
        late = record.find(f"http://h{PAGES - 2}.test/")
        assert record.trained(late) > 0.9 > late.probability
    assert found_in(tmp_path) == final
    assert final == sorted(f"http://h{i}.test/" for i in range(PAGES) if i % 3 == 2)
    assert all("scores" not in item for item in lines_of(tmp_path / "items.jsonl"))


@pytest.mark.long
def test_killed_crawl_learns_the_same(scrapy, tmp_path):
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
    with served() as web:
        command = arguments_in(tmp_path / "whole", *answers_in(tmp_path))
        log_of(scrapy(*command, pages=add_soups(web)))
    command = arguments_in(tmp_path / "killed", *answers_in(tmp_path))
    with served() as web:
        killed = scrapy(*command, pages=add_soups(web), program=("-c", KILLED))
        assert killed.returncode == -9, killed.stderr
        log_of(scrapy(*command, pages=web))
    assert found_in(tmp_path / "killed") == found_in(tmp_path / "whole")
    assert pack_of(tmp_path / "killed") == pack_of(tmp_path / "whole")


ANSWERED = """
import runpy
from pathlib import Path
from tres_scrapy.run.journal import Journal
from tres_scrapy.topic.topic_folder import TopicFolder, add_answers
book = Journal.book
def answered(self, *arguments):
    if self.steps == 10:
        folder = TopicFolder(Path({!r}))
        folder.path.mkdir()
        add_answers(folder.answers, {{"http://h13.test/": False}})
    return book(self, *arguments)
Journal.book = answered
runpy.run_module("scrapy", run_name="__main__")
"""


@pytest.mark.slow
def test_first_answer_begins_a_topic(scrapy, soups, tmp_path, capsys):
    program = ANSWERED.format(str(tmp_path / "job" / "topic"))
    process = scrapy(*arguments_in(tmp_path), pages=soups, program=("-c", program))
    assert "and 1 answer; precision and recall are unknown without a yes" in log_of(process)
    assert "http://h13.test/" not in found_in(tmp_path)
    with pytest.raises(SystemExit) as end:
        tres("answer", tmp_path / "job", "--no", "http://h1.test/")
    assert end.value.code == 0, capsys.readouterr().err
    assert "http://h1.test/" not in found_in(tmp_path)
