import json
import re

import numpy as np
import pytest

from tres_scrapy.refresh.collection import KnownPage
from tres_scrapy.refresh.main_text import copy_of
from tres_scrapy.refresh.refresher import Refresher
from tres_scrapy.refresh.report import expected_freshness, groups_of, history, write_report
from tres_scrapy.refresh.settings import RefresherOptions
from tres_scrapy.refresh.store import Store
from tres_scrapy.refresh.text_change import PageChange, side_by_side
from tres_scrapy.refresh.visit import PageAnswer
from tres_scrapy.report.chart import plotly_script


@pytest.fixture
def refresher(tmp_path):
    known = [
        KnownPage(f"http://a.test/{folder}/<{i}>", 1.0, 0.0, copy_of("T", "old text"))
        for folder in ("news", "docs")
        for i in range(3)
    ]
    store = Store(tmp_path / "s.sqlite")
    yield Refresher(store, RefresherOptions(100, min_age=0.0, grace=1), known, 0.0)
    store.close()


def visit(refresher, now, words="new text", status=200):
    request = refresher.next(now)
    copy = copy_of("T", words) if status == 200 else None
    refresher.book(request, PageAnswer(status, copy=copy), now)
    refresher._asked.clear()  # as if each visit were a separate run
    refresher._ready[:] = 0.0


def test_report_escapes_what_strangers_write(refresher, tmp_path):
    for number in range(12):
        visit(refresher, 100.0 * number + 50, "new text" if number % 2 else "old text")
    visit(refresher, 2_000.0, status=404)
    path = tmp_path / "r.html"
    write_report(path, refresher, 3_000.0)
    text = path.read_text().replace(plotly_script(), "")
    assert "6 pages, 13 answers so far" in text
    assert text.count("<script") == 3
    assert "/&lt;0&gt;" in text
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', text, re.DOTALL)[1])
    assert (
        list(figures)
        == re.findall(r'data-figure="(\w+)"', text)
        == ["freshness", "groups", "rates"]
    )
    asked = [trace["x"] for trace in figures["groups"]["data"]]
    assert sum(map(sum, asked)) == 13
    assert sum(figures["rates"]["data"][0]["y"]) >= 6
    assert "gone; next request from" in text
    assert not re.search(r"(?:src|href)=.http", text)


def test_changed_texts_are_escaped(refresher, tmp_path):
    places = side_by_side("soup <b>hot</b>", "soup <script>cold</script>")
    changes = [
        PageChange("http://a.test/'\"><b>", "</summary><b>", "changed", "2026-11-21T10:00", places),
        PageChange("javascript:alert(1)", "", "minor", "", []),
    ]
    write_report(tmp_path / "r.html", refresher, 1.0, changes)
    text = (tmp_path / "r.html").read_text()
    assert "<del>&lt;b&gt;hot&lt;/b&gt;</del>" in text
    assert "<ins>&lt;script&gt;cold&lt;/script&gt;</ins>" in text
    assert "<script" not in text
    assert "<b>" not in text
    assert 'href="javascript:' not in text


def test_report_before_the_first_answer(refresher, tmp_path):
    write_report(tmp_path / "r.html", refresher, 1.0)
    text = (tmp_path / "r.html").read_text()
    assert "6 pages, 0 answers so far" in text
    assert "<script" not in text


def test_freshness_falls_until_a_visit(refresher):
    for number in range(6):
        visit(refresher, 100.0 + number)
    visits = history(refresher)
    assert [each.change for each in visits] == ["changed"] * 6
    before, after, later = expected_freshness(refresher, visits, np.array([99.0, 106.0, 400.0]))
    assert before < after > later
    assert after > 0.85


def test_groups_count_what_was_found(refresher):
    for number in range(4):
        visit(refresher, 100.0 + number)
    groups = groups_of(refresher, history(refresher))
    assert {group.name for group in groups} == {"a.test/news", "a.test/docs"}
    assert sum(group.found["changed"] for group in groups) == 4
    assert [group.pages for group in groups] == [3, 3]
