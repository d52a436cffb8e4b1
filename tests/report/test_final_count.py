"""The report of a crawl whose last model judged all pages again."""

import json
import re
import shutil
from contextlib import closing

from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.report.chart import plotly_script
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import open_to_write


def test_report_has_one_count_where_the_last_model_judged(recorded, tmp_path):
    copy = tmp_path / "a.run"
    shutil.copy(recorded.path, copy)
    with Record(copy) as read:
        then, out = read.count()["relevant"], next(read.pages())
    final = {"pages": then + 4, "domains": 3, "identity": "x", "rows_out": [out.row]}
    with closing(open_to_write(copy)) as file:
        file.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", ("final", json.dumps(final)))
    with Record(copy) as read:
        page = render(read).replace(plotly_script(), "")
    text = LexborHTMLParser(page).body.text(separator=" ")
    assert f"{then + 4} of " in text
    assert f"when they were fetched, {then} were judged relevant" in text
    assert re.search(rf"relevant pages\s+{then + 4}\s", text)
    found = LexborHTMLParser(page).css_first("ol.best")
    assert f'href="{out.final_url or out.url}"' not in found.html
