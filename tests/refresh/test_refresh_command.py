import pytest
from conftest import command

from tres_scrapy.cli import crawl as module


def test_options_become_spider_arguments(monkeypatch):
    given: list[list[str]] = []
    monkeypatch.setattr(module, "execute", given.append)
    with pytest.raises(SystemExit, match="0"):
        command("refresh", "a.jsonl", "--budget", "9")
    words = ["-a", "budget=9", "-a", "collection=a.jsonl", "-s", "STATS_DUMP=0"]
    assert given == [["tres", "crawl", "refresh", *words]]
