"""The counts of a crawl whose last model judged all pages again."""

import json
import re
import shutil
from contextlib import closing

import pytest
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.report.chart import plotly_script
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import crawls_here
from tres_scrapy.report.share import Totals, independent, shares, totals
from tres_scrapy.run.run_file import RecordError, open_to_write
from tres_scrapy.run.snapshot import DOORS


def settle(path, final):
    with closing(open_to_write(path)) as file:
        file.execute("INSERT OR REPLACE INTO meta VALUES ('final', ?)", (final,))


@pytest.fixture
def copy(recorded, tmp_path):
    return shutil.copy(recorded.path, tmp_path / "a.run")


@pytest.fixture
def moved(copy):
    """Return a record, a page that the last model took out, one that it found, and its output."""
    with Record(copy) as read:
        good = list(read.pages())
        late = next(page for page in read.pages(0.0) if not page.relevant)
        output = [late, *good[3:]]
        rows = [page.row for page in output]
        final = {"identity": "x", "rows_out": [good[0].row], "rows": rows}
        settle(copy, json.dumps(final | {"probabilities": {late.row: 0.9871, rows[-1]: 0.0123}}))
        yield read, good[0], late, output


def test_report_has_one_count_where_the_last_model_judged(moved):
    read, out, late, output = moved
    page = render(read).replace(plotly_script(), "")
    text = LexborHTMLParser(page).body.text(separator=" ")
    count, then = len(output), len(list(read.pages()))
    assert f"{count} of " in text
    assert f"when they were fetched, {then} were judged relevant" in text
    assert re.search(rf"relevant pages\s+{count}\s", text)
    assert f"Search all {count} relevant pages" in page
    found = LexborHTMLParser(page).css_first("ul.findings").html
    assert f'href="{late.final_url or late.url}"' in found
    assert f'href="{out.final_url or out.url}"' not in found


def test_lists_have_what_the_last_model_says(moved):
    read, _, late, output = moved
    found = {page.row: page.probability for page in read.relevant(1_000)}
    before = {page.row: page.probability for page in output}
    assert found == before | {late.row: 0.9871, output[-1].row: 0.0123}
    of_domain = [page for page in read.best(1_000) if page.domain == output[-1].domain]
    assert {page.row: page.probability for page in of_domain}.items() <= found.items()
    assert of_domain[-1].row == output[-1].row, "the least certain page of its domain"


def test_parts_add_up_to_the_output(moved):
    read, _, _, output = moved
    pages = sum(1 for page in read.last(1_000) if page.kind == "page")
    assert totals(read) == Totals(pages, len(output), len({page.domain for page in output}))
    assert sum(share.relevant for share in shares(read, 1_000)) == len(output)
    assert read.count()["relevant"] == len(output)
    doors = {page.domain: [page.domain, True] for page in read.last(1_000)}
    with closing(open_to_write(read.path)) as file:
        values = DOORS, 0, json.dumps(doors)
        file.execute("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?)", values)
    assert independent(read) == len(output)


def test_explanation_says_where_the_last_model_moved_a_page(moved):
    read, out, late, output = moved
    said = {page.row: str(FetchExplanation(read, page.url)) for page in (out, late, output[-1])}
    assert "; not in the output now\n" in said[out.row]
    assert "; in the output now\n" in said[late.row]
    assert "in the output now" not in said[output[-1].row]


def test_list_of_crawls_counts_the_output(moved, monkeypatch):
    read, _, _, output = moved
    monkeypatch.chdir(read.path.parent)
    assert f" pages, {len(output)} relevant" in crawls_here()


@pytest.mark.parametrize("is_blind", [False, True])
def test_report_says_that_a_trained_topic_was_blind(copy, is_blind):
    settle(copy, json.dumps({"identity": "x", "rows": [], "is_blind": is_blind}))
    with Record(copy) as read:
        assert ("The trained topic hardly knew these pages" in render(read)) == is_blind


def test_damaged_output_is_refused(copy):
    with Record(copy) as read:
        settle(copy, "{")
        with pytest.raises(RecordError, match="cannot be read"):
            totals(read)
