"""What links say, from the judge's process to the items and the record, as a user runs it."""

import sqlite3

import pytest
from soup import FOOD, lines_of, link

from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record

NAMES = ("leek", "pea", "bean", "beet", "kale", "corn", "chard", "cress")


@pytest.fixture
def soups(pages):
    """A page with links to all others, below a heading that only a missing page has, too."""
    hosts = [f"http://h{i}.test/" for i in range(len(NAMES))]
    for name, url in zip(NAMES, hosts, strict=True):
        pages.add(url, FOOD.format(name))
    missing = "<title>404 not found</title><h2>starters</h2>"
    pages.add("http://gone.test/", missing + link("http://h0.test/x"))
    pages.add(hosts[0], FOOD.format("leek") + "<h2>starters</h2>" + link(*hosts[1:]))
    return pages


def command(tmp_path, *arguments):
    return (
        *("crawl", "tres", "-a", "topic=food", "-a", f"output={tmp_path / 'pages.jsonl'}"),
        *("-a", "seed=http://gone.test/,http://h0.test/", "-s", "DOWNLOAD_DELAY=0"),
        *("-s", "RETRY_TIMES=0", "-s", "CONCURRENT_REQUESTS=1", *arguments),
    )


@pytest.mark.long
def test_resumed_crawl_knows_old_names(scrapy, tmp_path, soups):
    path = tmp_path / "job" / "tres.run"
    for count in (3, 8):
        job = ("-s", f"JOBDIR={tmp_path / 'job'}", "-a", f"pages={count}")
        process = scrapy(*command(tmp_path, *job), pages=soups)
        assert process.returncode == 0, process.stderr
    assert soups.fetched().count("http://h0.test/") == 1, "its words are told once"
    with Record(path) as read:
        _, _, *found = read.last(100)[::-1]
        assert read.count()["soft_404"] == 1
        weights = {each.text: each for each in read.link_weights()["heading"]}
        assert len(found) == 7
        assert all(page.link for page in found)
        assert not any("not known" in part.label for page in found for part in page.link)
        assert len(read.predictions()[0]) == 7
    assert weights["starters"].fetched == weights["starters"].relevant == 7
    assert weights["starters"].weight > 0
    whys = [item["why"] for item in lines_of(tmp_path / "pages.jsonl")]
    assert whys[0] == "Seed."
    assert all("Link: " in why for why in whys[1:])


@pytest.mark.long
def test_crawl_without_link_model_has_no_names(scrapy, tmp_path, soups):
    process = scrapy(*command(tmp_path, "-a", "link_model=0"), pages=soups)
    assert process.returncode == 0, process.stderr
    with sqlite3.connect(tmp_path / "pages.run") as connection:
        assert connection.execute("SELECT count(*) FROM name").fetchone() == (0,)
        assert connection.execute("SELECT count(link) FROM page").fetchone() == (0,)
    connection.close()
    assert not any("Link: " in item["why"] for item in lines_of(tmp_path / "pages.jsonl"))
    assert "What links say" not in (tmp_path / "pages.html").read_text(encoding="utf-8")


@pytest.mark.long
def test_wall_is_named_and_not_harvested(scrapy, tmp_path, pages):
    wall = "<title>Leek soup recipe</title><p>Are you a robot? Cook, bake, boil soup."
    pages.add("http://gone.test/", FOOD.format("pea") + link("http://wall.test/"))
    pages.add("http://h0.test/", FOOD.format("leek"))
    pages.add("http://wall.test/", wall + link("http://beyond.test/"))
    process = scrapy(*command(tmp_path), pages=pages)
    assert process.returncode == 0, process.stderr
    assert process.stats["tres/failures/wall_challenge"] == 1
    assert "http://beyond.test/" not in pages.fetched()
    assert len(lines_of(tmp_path / "pages.jsonl")) == 2
    assert "1 (challenge 1)" in (tmp_path / "pages.html").read_text(encoding="utf-8")
    with Record(tmp_path / "pages.run") as read:
        assert "a check whether the visitor is a human" in str(
            FetchExplanation(read, "http://wall.test/")
        )
