"""The folder of static HTML of a crawl."""

import json
import re
from contextlib import closing

import pytest
from conftest import command
from recorded_run import crawl_of, record
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.publish import folder as publishing
from tres_scrapy.publish.collection import Collection, Site, read_collection, shortened
from tres_scrapy.publish.folder import MARK, publish, wilson
from tres_scrapy.publish.site_map import HUBS, SHOWN, SIDE, draw
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import open_to_write
from tres_scrapy.url.message import TresError

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\u202e"


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "food.run"
    record(path, crawl_of(pages=80))
    return path


@pytest.fixture
def folder(run, tmp_path):
    with Record(run) as read:
        publish(read, tmp_path / "site")
    return tmp_path / "site"


def change(run, statement, *values):
    with closing(open_to_write(run)) as file:
        file.execute(statement, values)


def parsed(folder):
    return {
        path.name: LexborHTMLParser(path.read_text(encoding="utf-8"))
        for path in folder.glob("*.html")
    }


def test_every_relevant_page_is_shown_once(run, folder):
    shown = [
        link.attributes["href"]
        for name, page in parsed(folder).items()
        if name.startswith("site-")
        for link in page.css("ol.pages > li > a")
    ]
    with Record(run) as read:
        found = [page.final_url or page.url for page in read.pages()]
    assert found
    assert sorted(shown) == sorted(found)


def test_links_lead_out_of_the_folder_or_to_its_files(folder):
    for page in parsed(folder).values():
        for link in page.css("a"):
            target = link.attributes["href"].partition("#")[0]
            if target.startswith("http"):
                assert {"nofollow", "noopener"} <= set(link.attributes["rel"].split())
            else:
                assert (folder / target).is_file()


def test_pages_load_nothing_and_allow_one_script(folder):
    for name, page in parsed(folder).items():
        policy = page.css_first("meta[http-equiv]").attributes["content"]
        assert policy.startswith("default-src 'none'")
        assert ("script-src 'sha256-" in policy) == (name == "search.html")
        assert not page.css("[src], [onclick], link[rel=stylesheet], base, form")


def test_hostile_text_stays_text(run, tmp_path):
    change(run, "UPDATE page SET title = ?1, text = ?1, anchor = ?1, domain = ?1", HOSTILE)
    change(run, "UPDATE page SET url = 'javascript:alert(1)', final_url = NULL")
    change(run, "UPDATE meta SET value = ? WHERE name = 'topic'", HOSTILE)
    with Record(run) as read:
        publish(read, tmp_path / "site")
    for name, page in parsed(tmp_path / "site").items():
        assert not page.css("img, [onerror]")
        assert len(page.css("script")) == (2 if name == "search.html" else 0)
        assert not page.css("a[href^=javascript]")
    assert {path.suffix for path in (tmp_path / "site").iterdir()} == {".html", ".txt"}


def test_search_index_has_every_page(run, folder):
    text = parsed(folder)["search.html"].css_first("#index").text()
    with Record(run) as read:
        urls = sorted(page.url for page in read_collection(read).pages)
    assert sorted(url for _, url, _, _ in json.loads(text)) == urls


def test_large_site_has_several_files(run, tmp_path, monkeypatch):
    monkeypatch.setattr(publishing, "ON_A_PAGE", 1)
    with Record(run) as read:
        count = publish(read, tmp_path / "site")
    assert len(list((tmp_path / "site").glob("site-*.html"))) == count
    test_links_lead_out_of_the_folder_or_to_its_files(tmp_path / "site")


def sign(run, page, *signal):
    change(run, "INSERT OR REPLACE INTO rights VALUES (?, ?)", page.row, json.dumps([signal]))


@pytest.mark.parametrize(
    ("signal", "said"),
    [
        (
            ("Content-Signal", "ai-train=no", "robots.txt"),
            "Content-Signal: ai-train=no (robots.txt)",
        ),
        (("noai", "", "meta robots"), "noai (meta robots), reserved: ai-input, ai-train"),
        (("none", "", "robots.txt, page"), "no signal was found in robots.txt, page"),
    ],
)
def test_rights_of_redirected_page_are_shown(run, tmp_path, signal, said):
    with Record(run) as read:
        page = next(read.pages())
        change(run, "UPDATE page SET final_url = 'http://other.test/' WHERE row = ?", page.row)
        sign(run, page, *signal)
        publish(read, tmp_path / "site")
    pages = [path.read_text(encoding="utf-8") for path in (tmp_path / "site").glob("site-*")]
    assert sum(f"Rights: {said}" in page for page in pages) == 1


def test_reserved_pages_are_left_out(run, tmp_path):
    with Record(run) as read:
        first, *others = read.pages()
        sign(run, first, "noai", "", "meta robots")
        change(run, "INSERT OR REPLACE INTO setting VALUES ('TRES_USE', 'ai-train')")
        assert publish(read, tmp_path / "site") == len(others)
    index = (tmp_path / "site/index.html").read_text(encoding="utf-8")
    assert "1 relevant page left out: reserved" in index
    assert "not recorded" not in index


def test_own_folder_is_replaced_and_others_kept(run, tmp_path, folder):
    (folder / "site-99999.html").write_text("old", encoding="utf-8")
    other = tmp_path / "other"
    other.mkdir()
    (other / "letter.txt").write_text("mine", encoding="utf-8")
    with Record(run) as read:
        publish(read, folder)
        with pytest.raises(TresError, match="is not of tres publish"):
            publish(read, other)
    assert not (folder / "site-99999.html").exists()
    assert (folder / MARK).is_file()
    assert [path.name for path in other.iterdir()] == ["letter.txt"]


def test_crawl_without_pages_is_published(run, tmp_path):
    change(run, "UPDATE page SET relevant = 0")
    with Record(run) as read:
        assert publish(read, tmp_path / "site") == 0
    assert "0.0\N{NO-BREAK SPACE}%" in (tmp_path / "site/index.html").read_text(encoding="utf-8")


def test_map_stays_in_its_square():
    sites = [Site(f"{i}.test", i, 9, [None] * (60 - i)) for i in range(1, 60)]
    links = {(f"hub{i}.test", "1.test"): i for i in range(1, 9)} | {("2.test", "3.test"): 4}
    found = draw(Collection("food", "", True, 99, sites, links))
    assert len(found.dots) == SHOWN + HUBS
    assert len(found.lines) == HUBS + 1
    assert all(dot.r < dot.x < SIDE - dot.r and dot.r < dot.y < SIDE - dot.r for dot in found.dots)
    assert len({(dot.x, dot.y) for dot in found.dots}) == len(found.dots)


def test_interval_is_that_of_wilson():
    assert wilson(0, 0) == (0.0, 1.0)
    low, high = wilson(7, 10)  # 0.3968 to 0.8922 in Newcombe (1998), method 3
    assert (round(low, 4), round(high, 4)) == (0.3968, 0.8922)
    assert wilson(5, 5)[1] == 1.0


def test_long_text_ends_after_a_word():
    assert shortened("a leek and a pea", 8) == "a leek …"
    assert shortened("a leek", 8) == "a leek"


def test_command_names_the_page_to_open(run, capsys):
    with pytest.raises(SystemExit, match="0"):
        command("publish", str(run))
    said = capsys.readouterr().out
    assert re.fullmatch(r".*food-site/index\.html: \d+ pages?\n", said)
