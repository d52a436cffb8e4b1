"""What report, log and live page say of the sites and bodies that gave the pages."""

import json
import logging
import sqlite3
from types import SimpleNamespace

import pytest
from farmed_run import crawl_of, farmed, hidden_farm, honest, one_site, record, repeating
from scrapy.settings import Settings

from tres_scrapy.config.config import Config
from tres_scrapy.config.limit import Cap
from tres_scrapy.crawl.share import BODY, SMALL, Holder
from tres_scrapy.extensions.recorder import Recorder
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.view import View
from tres_scrapy.page.copies import NOTHING
from tres_scrapy.report.chart import plotly_script
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.record import Record
from tres_scrapy.report.share import DOUBT, holder_of, independent, sentence, shares
from tres_scrapy.run.run_file import RecordError
from tres_scrapy.run.snapshot import DOORS, HOLDER

WARNING = "of the last 500 pages; 1 other site links to farm.test."


def recorded(folder, links, pages=600, known=lambda _: NOTHING, **options):
    record(folder / "a.run", crawl_of(pages, **options), links, known=known)
    return Record(folder / "a.run")


@pytest.fixture(scope="module")
def farm(tmp_path_factory):
    with recorded(tmp_path_factory.mktemp("run"), farmed) as read:
        yield read


def test_report_names_a_farm(farm):
    page = render(farm).replace(plotly_script(), "")
    assert WARNING in page
    assert 'class="failed" role="alert"' in page
    assert "relevant and independently linked" in page
    assert "<td><bdi>farm.test</bdi></td>" in page


def test_shares_add_up(farm):
    found = shares(farm, 1000)
    assert sum(share.pages for share in found) == 600
    largest = found[0]
    assert (largest.site, largest.relevant) == ("farm.test", largest.pages)
    assert largest.sites > 50
    assert independent(farm) <= 600 - largest.pages


def test_large_site_within_its_cap_is_a_fact(tmp_path):
    with recorded(tmp_path, one_site, pages=400, cap=Cap(999, 999)) as read:
        page = render(read).replace(plotly_script(), "")
        assert "of the last 400 pages: max_per_domain allows as many." in page
        assert 'role="alert"' not in page


def test_report_of_an_honest_web_says_nothing(tmp_path):
    with recorded(tmp_path, honest, pages=300) as read:
        assert holder_of(read) is None
        assert "of the last" not in render(read).replace(plotly_script(), "")


def test_file_without_links_of_sites_has_shares_of_sites(tmp_path):
    with recorded(tmp_path, honest, pages=60) as read:
        assert shares(read, 1)
    with sqlite3.connect(tmp_path / "a.run") as database:
        database.execute("DELETE FROM snapshot WHERE name IN (?, ?)", (DOORS, HOLDER))
    with Record(tmp_path / "a.run") as read:
        assert independent(read) is None
        assert all(share.sites == 1 for share in shares(read, 5))
        assert "independently linked</dt>" not in render(read)


def test_damaged_holder_is_refused(tmp_path):
    with recorded(tmp_path, honest, pages=20) as read:
        path = read.path
    with sqlite3.connect(path) as database:
        database.execute("UPDATE snapshot SET value = '[1]' WHERE name = ?", (HOLDER,))
    with Record(path) as read, pytest.raises(RecordError):
        holder_of(read)


def test_live_page_shows_the_farm(farm, tmp_path):
    view = View(farm.path, Answering(tmp_path / "answers.txt", "Noted in"))
    held = json.loads(view.state({}, -1))["holder"]
    view.close()
    assert held["site"] == "farm.test"
    assert WARNING in held["said"]


def test_log_warns_once_about_each_body(caplog):
    recorder = Recorder(SimpleNamespace(), Config.of(Settings()))
    farm = Holder("farm.test", 5, 300, 500, 0)
    with caplog.at_level(logging.INFO):
        for holder in (None, farm, farm._replace(pages=400), farm._replace(reason="seed")):
            recorder._warn(holder)
        recorder._warn(farm._replace(site="other.test", sites=1))
    first, second = caplog.messages
    assert first.startswith("farm.test and 4 sites found only through it gave 60% of the last 500")
    assert "no other sites link to farm.test" in first
    assert second.startswith("other.test gave 60%")


def test_report_says_where_judge_and_trust_disagree(tmp_path):
    with recorded(tmp_path, hidden_farm, known=repeating, cap=Cap(9, 9)) as read:
        assert holder_of(read).doubt == BODY
        page = render(read).replace(plotly_script(), "")
    assert DOUBT in page
    assert 'class="failed" role="alert"' in page


def test_log_warns_once_about_small_sites(caplog):
    recorder = Recorder(SimpleNamespace(), Config.of(Settings()))
    small = Holder("a.test", 9, 100, 500, 1, doubt=SMALL)
    recorder._warn(small)
    recorder._warn(small._replace(site="b.test"))
    (said,) = caplog.messages
    assert said == (
        "9 small sites, of which a.test is the largest, gave 20% of the last 500 pages; 1 other "
        f"site links to a.test. {DOUBT}If you do not trust it, take its pages out: "
        "tres distrust a.test RUN"
    )


def test_reason_is_said():
    said = sentence(Holder("a.test", 1, 400, 500, 3, "seed"))
    assert said == "a.test gave 80% of the last 500 pages: the crawl began there."
