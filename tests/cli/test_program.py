"""The program `tres` in an empty folder."""

import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from conftest import TRES, command
from soup import FOOD, link

from tres_scrapy.cli import main
from tres_scrapy.cli.main import commands

PARTS = {"__init__", "command", "diagnosis", "main", "person"}  # files that are no command


@pytest.fixture
def tres(scrapy, tmp_path):
    return partial(scrapy, program=("-m", TRES), project=tmp_path)


def test_every_file_is_a_command():
    files = {path.stem for path in Path(main.__file__).parent.glob("*.py")}
    assert set(commands()) == files - PARTS


def test_command_goes_with_its_file(monkeypatch, capsys):
    known = main.find_spec
    gone = "tres_scrapy.cli.cluster"
    monkeypatch.setattr(main, "find_spec", lambda name: None if name == gone else known(name))
    assert "cluster" not in commands()
    with pytest.raises(SystemExit, match="tres: unknown command 'cluster'"):
        command("cluster")
    with pytest.raises(SystemExit, match="0"):
        command()
    assert "one crawl in several" not in capsys.readouterr().out


@pytest.mark.parametrize("name", [*commands(), "cluster crawl"])
def test_help_is_for_strangers(name, capsys):
    words = name.split()
    pytest.importorskip(f"tres_scrapy.cli.{words[0]}", reason="its guest is not here")
    with pytest.raises(SystemExit, match="0"):
        command(*words, "--help")
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: tres {name}")
    assert "(see" not in shown
    assert name == "doctor" or f"  tres {name} " in shown or f"Example: tres {name} " in shown
    assert max(map(len, shown.splitlines())) <= 110
    with pytest.raises(SystemExit, match="0"):
        command("help", words[0])
    assert capsys.readouterr().out.startswith(f"Usage: tres {words[0]}")


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--help"], ["--version"], ["crawll"]])
def test_overview_loads_no_crawler(words, tmp_path):
    program = (
        "import sys; from tres_scrapy.cli.main import main\n"
        "try: main()\n"
        "finally: print({'torch', 'scrapy', 'twisted'} & sys.modules.keys())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.splitlines()[-1] == "set()", ended.stderr


@pytest.mark.slow
def test_crawler_skips_pytorch():
    """The judge's process alone loads it."""
    program = (
        "import sys; from tres_scrapy import addon, scheduler; "
        "from tres_scrapy.middlewares import reward; from tres_scrapy.spiders import tres, crawl; "
        "sys.exit('torch' in sys.modules or 'click' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.slow
def test_topic_from_keywords_skips_pytorch(tmp_path):
    program = (
        "import sys; from pathlib import Path; from tres_scrapy.config.limit import ReadingLimits; "
        "from tres_scrapy.topic.judge import Source; "
        "from tres_scrapy.topic.keyword import KeywordSet; "
        "from tres_scrapy.topic.learning_judge import LearningTask; "
        "from tres_scrapy.topic.topic_learner import open_topic; "
        f"folder = Path({str(tmp_path)!r}); open_topic('soup', KeywordSet(['soup']), folder); "
        "task = LearningTask(Path(), ReadingLimits(), folder=folder, name='soup', "
        "keywords=('soup',)); judge = task.load(); judge.learn(); "
        "judge([Source(b'<p>' + b'leek soup ' * 20, 'http://a.test/')]); judge.learn(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


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
        (("train", "tea"), "tres train: --keywords is missing; see"),
        (
            ("train", "tea", "--keyword", "k"),
            "tres train: unknown option --keyword; did you mean --keywords?",
        ),
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
