"""The program `tres` in an empty folder."""

import re

import pytest
from soup import FOOD, link

from tres_scrapy.commands.deferred import Deferred
from tres_scrapy.console.overview import COMMANDS
from tres_scrapy.console.spider_option import SPIDERS

PROGRAM = ("-c", "from tres_scrapy.console.main import main; main()")


@pytest.fixture
def tres(scrapy, tmp_path):
    def run(*arguments, **options):
        return scrapy(*arguments, program=PROGRAM, project=tmp_path, **options)

    return run


def test_every_command_is_listed():
    ours = {each.module.removeprefix("tres-") for each in Deferred.__subclasses__()}
    assert set(COMMANDS) == ours | set(SPIDERS) | {"cluster"}


def test_crawl_is_followed_by_report_and_explanation(tres, tmp_path, pages):
    pages.add("http://a.test/", FOOD.format("leek") + link("/2"))
    pages.add("http://a.test/2", FOOD.format("pea"))
    crawled = tres(
        *("crawl", "food", "http://a.test/", "--pages", "2", "-o", "food.jsonl"),
        *("-s", "DOWNLOAD_DELAY=0"),
        pages=pages,
    )
    assert crawled.returncode == 0, crawled.stderr
    assert "Dumping Scrapy stats" not in crawled.stderr
    assert len((tmp_path / "food.jsonl").read_text().splitlines()) == 2
    assert "Highest Q" in tres("explain", "food.jsonl", "http://a.test/2").stdout
    assert tres("report", "food.jsonl", "-o", "r.html").stdout == "r.html\n"
    (tmp_path / "output").mkdir()
    (tmp_path / "food.run").rename(tmp_path / "output" / "food.run")
    latest = tres("explain", "http://a.test/2")
    assert "Highest Q" in latest.stdout
    assert latest.stderr == "The latest crawl: output/food.run\n"
    (tmp_path / "output" / "food.run").rename(tmp_path / "food.run")
    seen = tres().stdout
    assert "Topics: food, hardware, sports\n" in seen
    assert re.search(r"ended +food.run: 2 of 2 pages, 2 relevant \(page_limit\)", seen)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ("crawl", "fod", "http://a.test/"),
            "tres crawl: unknown topic 'fod'; did you mean food? The packs in",
        ),
        (("crawl", "food"), "tres crawl: no seed: add --seed URL to start there"),
        (("train", "tea"), "tres train: the following arguments are required: --keywords"),
        (("train", "tea", "--keyword", "k"), "tres train: the following arguments are required"),
        (
            ("explain", "a"),
            "tres explain: give the URL of a page, or a RUN and a URL, not 'a'; see",
        ),
        (
            ("explain", "http://a.test/"),
            "tres explain: no crawl has left a record in this folder: give",
        ),
        (("report",), "tres report: no crawl has left a record in this folder: give"),
        (("pack",), "tres pack: give `save NAME RUN`, not nothing; see tres pack --help"),
        (("classify", "food", "nowhere.html"), "tres classify: nowhere.html: no such file"),
        (("classify", "fod", "a"), "tres classify: unknown topic 'fod'"),
        (("crawll",), "tres: unknown command 'crawll'; did you mean crawl?"),
        (("tee",), "tres: unknown command 'tee'. The commands are crawl,"),
        (
            ("food", "http://a.test/?a=1&b"),
            "tres: 'food' is a topic, not a command; did you mean "
            "`tres crawl food 'http://a.test/?a=1&b'`?",
        ),
        (("fod", "a.test"), "tres: 'fod' is not a command; did you mean `tres crawl food a.test`?"),
        (
            ("a.org/x",),
            "tres: a topic must stand before the URL; did you mean `tres crawl TOPIC a.org/x`?",
        ),
    ],
)
def test_refusal_is_one_line(tres, arguments, complaint):
    ended = tres(*arguments)
    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1].startswith(complaint)
    assert "Traceback" not in ended.stderr
