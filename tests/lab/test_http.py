from __future__ import annotations

from pathlib import Path

import pytest

from tres_scrapy.lab.http import CrawlError, Tally, crawl_served
from tres_scrapy.lab.result import Run
from tres_scrapy.lab.webs.web import Answer, Count

RUN = Run("synthetic", "food", 1, "random", "none", 3)
ANSWERS = [
    ("http://a.test/robots.txt", Answer(200, b"", (), "robots")),
    ("http://a.test/", Answer(200, b"", (), "page", relevant=True)),
    ("http://a.test/", Answer(200, b"", (), "page", relevant=True)),
    ("http://b.test/x", Answer(404, b"", (), "missing")),
    ("http://b.test/trap", Answer(200, b"", (), "trap", relevant=True)),
    ("http://c.test/é", Answer(200, b"", (), "page")),
    ("http://www.d.test/", Answer(200, b"", (), "page", relevant=True)),
]


def write_log(path: Path) -> Count:
    with path.open("w", encoding="utf-8") as file:
        count = Count(file)
        for time, (url, answer) in enumerate(ANSWERS, 10):
            count.add(url, answer, time)
    return count


def test_log_gives_the_count(tmp_path: Path) -> None:
    count = write_log(tmp_path / "log")
    tally = Tally(tmp_path / "log", every=2)
    assert tally.read() == 4
    result = tally.result(RUN, exhausted=True)
    assert tally.count.summary() == count.summary()
    assert (result.pages, result.relevant, result.domains) == (4, 2, 2)
    assert (result.fetches, result.seconds, result.exhausted) == (6, 6, True)
    series = result.series
    assert (series.pages, series.relevant, series.domains) == ([2, 4], [1, 2], [1, 2])
    assert series.found == [1, 6]


def test_series_ends_with_last_page(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    tally = Tally(tmp_path / "log", every=3)
    tally.read()
    series = tally.result(RUN, exhausted=True).series
    assert (series.pages, series.relevant, series.domains) == ([3, 4], [1, 2], [1, 2])


def test_growing_log_is_followed(tmp_path: Path) -> None:
    write_log(tmp_path / "whole")
    content = (tmp_path / "whole").read_bytes()
    tally, pages = Tally(tmp_path / "log", every=1), 0
    assert tally.read() == 0
    for end in range(0, len(content) + 40, 40):
        (tmp_path / "log").write_bytes(content[:end])
        pages += tally.read()
    assert pages == tally.count.pages == 4
    assert tally.count.fetches == len(ANSWERS)


@pytest.mark.usefixtures("loaded_python")
def test_failed_start_names_its_reason() -> None:
    settings = {"TRES_WEB": "synthetic", "TRES_TOPIC": "none"}
    with pytest.raises(CrawlError, match="unknown topic 'none'"):
        crawl_served(RUN, settings, lambda pages: None)


@pytest.mark.usefixtures("loaded_python")
def test_http_crawl_is_counted_live() -> None:
    settings = {
        "TRES_WEB": "synthetic",
        "TRES_TOPIC": "food",
        "TRES_PAGES": "3",
        "TRES_POLICY": "random",
    }
    told: list[int] = []
    result = crawl_served(RUN, settings, told.append)
    assert result.run == RUN
    assert result.pages == sum(told) == result.series.pages[-1]
    assert 1 <= result.relevant <= result.pages <= result.fetches
    assert not result.exhausted
    assert result.series.frontier == []
