"""Sites that are taken out of what a run gives; their pages stay in its file."""

import json
import re
import shutil
from contextlib import closing

import pytest
from farmed_run import crawl_of, farmed, record

from tres_scrapy.forget import distrust as module
from tres_scrapy.forget.distrust import distrust
from tres_scrapy.report.chart import plotly_script
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.record import Record
from tres_scrapy.report.share import holder_of, shares
from tres_scrapy.run.database import Access
from tres_scrapy.run.forgotten import DISTRUSTED, Forgotten
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.run_file import SCHEMA
from tres_scrapy.url.message import TresError

PAGES = 600
FARM = "http://farm"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "a.run"
    record(path, crawl_of(PAGES), farmed, is_durable=True)
    with Record(path) as read:
        urls = [page.url for page in read.pages()]
    path.with_suffix(".jsonl").write_text("".join(f"{json.dumps({'url': u})}\n" for u in urls))
    path.with_suffix(".html").write_text("old")
    return path


@pytest.fixture
def run(original, tmp_path):
    for path in original.parent.iterdir():
        shutil.copy(path, tmp_path)
    path = tmp_path / original.name
    with closing(SCHEMA.open(path, Access.SHARED)) as file:
        output = str(path.with_suffix(".jsonl"))
        file.execute("UPDATE meta SET value = ? WHERE name = 'output'", (output,))
    return path


def is_farm(url):
    return url.startswith(FARM)


def rows_of(run, query):
    with closing(SCHEMA.open(run, Access.READ)) as file:
        return file.execute(query).fetchall()


def test_farm_leaves_the_output_and_stays_in_the_file(run):
    before = {url for (url,) in rows_of(run, "SELECT url FROM page")}
    said = []
    distrust(run, "farm.test", said.append)
    marked = rows_of(run, "SELECT url, relevant, reward FROM page WHERE kind = 'distrusted'")
    assert len(marked) > 200
    assert all(is_farm(url) for url, _, _ in marked)
    assert {(relevant, reward) for _, relevant, reward in marked} == {(0, 0.0)}
    assert {url for (url,) in rows_of(run, "SELECT url FROM page")} == before
    lines = run.with_suffix(".jsonl").read_text().splitlines()
    assert len(lines) == PAGES - len(marked)
    assert not [line for line in lines if is_farm(json.loads(line)["url"])]
    assert said[-2].startswith(f"{run}: {len(marked)} pages marked, of farm.test and ")


def test_report_shows_what_is_left(run):
    distrust(run, "farm.test", print)
    with Record(run) as read:
        count = read.count()
        assert holder_of(read) is None
        assert sum(share.pages for share in shares(read, 1000)) == count["relevant"]
        left = PAGES - count[DISTRUSTED]
        assert count["relevant"] == left
        page = render(read).replace(plotly_script(), "")
        assert f"{left} of {left} pages, 100.0\N{NO-BREAK SPACE}%, are relevant" in page
        out = f"{count[DISTRUSTED]} fetches of distrusted sites."
        assert f"Taken out, but still in the curves: {out}" in page
        assert f"<dt>pages</dt><dd>{left}</dd>" in page
        (url,) = next(iter(rows_of(run, "SELECT url FROM page WHERE kind = 'distrusted'")))
        assert "its site is distrusted" in str(FetchExplanation(read, url))
    assert run.with_suffix(".html").read_text() != "old"


def test_report_counts_what_is_left_of_a_final_output(run):
    rows = [row for (row,) in rows_of(run, "SELECT row FROM page ORDER BY step")][5:]
    with closing(SCHEMA.open(run, Access.SHARED)) as file:
        final = json.dumps({"pages": len(rows), "domains": 9, "rows_out": [], "rows": rows})
        file.execute("INSERT INTO meta VALUES ('final', ?)", (final,))
    distrust(run, "farm.test", print)
    left = rows_of(run, "SELECT row, domain FROM page WHERE kind = 'page'")
    domains = [domain for row, domain in left if row in rows]
    text = run.with_suffix(".html").read_text()
    share = f"{100 * len(domains) / len(left):.1f}\N{NO-BREAK SPACE}%"
    count = f"{len(domains)} of {len(left)} pages, {share}, are relevant to "
    assert re.search(rf"{count}\w+, on {len(set(domains))} domains", text)


def test_resumed_crawl_fetches_nothing_of_the_farm(run):
    crawl = crawl_of(None, is_new=False)
    with closing(SCHEMA.open(run, Access.EXCLUSIVE)) as database:
        recover(Journal(database), crawl)
        waiting = [crawl.store.url(row) for row in crawl.store.pending_rows().tolist()]
        assert any(map(is_farm, waiting))
    distrust(run, "farm.test", print)
    crawl = crawl_of(PAGES, is_new=False)
    with closing(SCHEMA.open(run, Access.EXCLUSIVE)) as database:
        recover(Journal(database), crawl)
        store = crawl.store
        waiting = [store.url(row) for row in store.pending_rows().tolist()]
        assert waiting  # sites of the farm that were never fetched are gone, too
        assert not any(map(is_farm, waiting))
        assert store.closure.is_closed("http://farm.test/new")
        assert not store.closure.is_closed("http://honest9.test/new")
        assert crawl.pages < PAGES
        assert crawl.next() is not None


def test_one_site_that_is_no_door_goes_alone(run):
    ((site,),) = rows_of(
        run, "SELECT domain FROM page WHERE domain GLOB 'farm[0-9]*' ORDER BY step DESC LIMIT 1"
    )
    distrust(run, site, print)
    found = rows_of(run, "SELECT DISTINCT domain FROM page WHERE kind = 'distrusted'")
    assert found == [(site,)]
    distrust(run, "farm.test", print)
    with closing(SCHEMA.open(run, Access.READ)) as file:
        assert {site, "farm.test"} <= Forgotten.read(file, DISTRUSTED).sites


def test_kill_in_the_middle_can_be_completed(run, monkeypatch):
    def kill(*_):
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(module, "_mark", kill)
        with pytest.raises(InterruptedError):
            distrust(run, "farm.test", print)
    distrust(run, "farm.test", print)
    before = rows_of(run, "SELECT * FROM page")
    distrust(run, "farm.test", print)
    assert rows_of(run, "SELECT * FROM page") == before


@pytest.mark.parametrize("text", ["never.test", "http://farm.test/x", "deep.farm.test"])
def test_other_text_than_a_fetched_site_is_refused(run, text):
    before = rows_of(run, "SELECT * FROM meta")
    with pytest.raises(TresError, match="must be a"):
        distrust(run, text, print)
    assert rows_of(run, "SELECT * FROM meta") == before
