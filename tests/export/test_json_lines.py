import os
import stat
import subprocess
import sys
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import PROJECT
from scrapy.settings import Settings
from test_finding import ITEM

from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.export.output_file import JsonLinesPipeline
from tres_scrapy.run.run_file import SUFFIX, open_to_write


def test_empty_file_is_removed(tmp_path):
    device, file = tmp_path / "null", tmp_path / "new" / "pages.jsonl"
    device.symlink_to("/dev/null")
    for path in (device, file):
        pipeline = JsonLinesPipeline(path)
        pipeline.open()
        assert path.exists()
        pipeline.close_spider()
    assert not file.exists()
    assert device.is_symlink()
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_resumed_output_says_both_counts(tmp_path, caplog):
    caplog.set_level("INFO")
    path = tmp_path / "food.jsonl"
    for count in (1, 2, 0):
        pipeline = JsonLinesPipeline(path)
        pipeline.open()
        for _ in range(count):
            pipeline.process_item(ITEM)
        pipeline.close_spider()
    assert caplog.messages == [
        f"Wrote 1 relevant page to {path}",
        f"Wrote 2 relevant pages to {path}, which has 3 now",
        f"Wrote 0 relevant pages to {path}, which has 3 now",
    ]


def test_pipe_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setattr(Path, "open", lambda *_, **__: pytest.fail("this would wait for ever"))
    pipeline = JsonLinesPipeline(path)
    pipeline.hold({ITEM.url})
    assert not pipeline._held


@pytest.fixture
def crawler(tmp_path):
    """The parts of a crawl of food that the pipeline needs; it writes to a.jsonl."""
    path = tmp_path / "a.jsonl"
    settings = Settings({"TRES_OUTPUT": str(path), "TRES_TOPIC": "food"})
    learner = SimpleNamespace(output=path, job=None, stop=None)
    return SimpleNamespace(settings=settings, spider=None, get_extension=lambda kind: learner)


def record_of(path, topic):
    """Write a record that says that a crawl of a topic wrote to a file."""
    with closing(open_to_write(path.with_suffix(SUFFIX))) as file:
        file.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("topic", topic), ("output", path.name)]
        )


@pytest.mark.parametrize(
    ("text", "topic", "complaint"),
    [
        ('{"url": "http://a.test/"}\n', "food", None),
        ('{"url": "http://a.test/"}\n', "sports", "holds pages of the topic 'sports': name anoth"),
        ("shopping list\n", "food", "holds something other than pages: name another file$"),
    ],
)
def test_output_of_another_topic_is_refused(crawler, tmp_path, text, topic, complaint):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    record_of(path, topic)
    refused = pytest.raises(ConfigError, match=complaint) if complaint else nullcontext()
    with refused:
        JsonLinesPipeline.from_crawler(crawler).close_spider()
    assert path.read_text() == text


def test_unwritable_output_is_found_early(tmp_path):
    settings = Settings({"TRES_OUTPUT": str(tmp_path)})
    learner = SimpleNamespace(output=tmp_path, job=None, stop=None)
    crawler = SimpleNamespace(settings=settings, spider=None, get_extension=lambda kind: learner)
    with pytest.raises(ConfigError, match=r"TRES_OUTPUT .* cannot be written: .*it is a folder"):
        JsonLinesPipeline.from_crawler(crawler)


def test_second_crawl_of_one_file_is_refused(tmp_path):
    path = tmp_path / "food.jsonl"
    first, second = JsonLinesPipeline(path), JsonLinesPipeline(path)
    first.open()
    first.process_item(ITEM)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"url": "half')  # a line that the first crawl is writing
    held = path.read_text(encoding="utf-8")
    with pytest.raises(ConfigError, match="another crawl writes to"):
        second.open()
    assert path.read_text(encoding="utf-8") == held
    first.close_spider()
    second.open()
    second.close_spider()


@pytest.mark.slow
def test_lock_of_a_killed_crawl_ends_with_it(tmp_path):
    path = tmp_path / "food.jsonl"
    crawl = f"""
import os
from pathlib import Path
from tres_scrapy.export.output_file import JsonLinesPipeline
JsonLinesPipeline(Path({str(path)!r})).open()
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", crawl], cwd=PROJECT, timeout=60, check=False)
    assert done.returncode == -9
    pipeline = JsonLinesPipeline(path)
    pipeline.open()
    pipeline.close_spider()
