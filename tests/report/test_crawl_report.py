"""The report of a run, and where its record is found."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from conftest import command
from judged import judged, told
from recorded_run import META, crawl_of, record, steps
from selectolax.lexbor import LexborHTMLParser

from tres_scrapy.crawl.failure import Failure
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.report.chart import plotly_script
from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.crawl_report import render, web_link, write_report
from tres_scrapy.report.record import Record
from tres_scrapy.report.record_path import find_record, latest_record, record_path
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.run_file import RecordError, open_to_write
from tres_scrapy.run.writer import Writer

HOSTILE = '</script><script>document.title = "owned"</script><img src=x onerror="alert(1)">\u202e'


@pytest.fixture(scope="module")
def path(recorded):
    return recorded.path


@pytest.fixture(scope="module")
def page(path):
    """Return the report without its longest script."""
    with Record(path) as read:
        return render(read).replace(plotly_script(), "")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return the report of a crawl of a hostile web."""
    path = tmp_path_factory.mktemp("run") / "food.run"
    crawl = crawl_of("plain", pages=None)
    writer = Writer.open(path, crawl, META | {"topic": HOSTILE}, {"A": HOSTILE}, 100.0)
    urls = ["http://a.test/?<script>alert(1)</script>", "http://b.test/'\"onclick=alert(1)"]
    while (decision := crawl.next()) is not None:
        actions = np.zeros((len(urls), 3), dtype=np.float32)
        booking = crawl.book(decision.row, judged(0.0), Outlinks(urls, [HOSTILE] * 2, actions))
        writer.note(told(booking, HOSTILE, HOSTILE), 100.0)
        urls = []
        actions = actions[:0]
    writer.flush(101.0)
    writer.journal.database.execute("UPDATE page SET url = 'javascript:alert(1)' WHERE step = 1")
    writer.journal.database.execute("UPDATE page SET domain = ?, kind = kind || '<b>'", (HOSTILE,))
    writer.journal.database.execute("UPDATE page SET kind = 'page', relevant = 1 WHERE step < 3")
    writer.close(102.0, HOSTILE)
    with Record(path) as read:
        write_report(read, path.with_suffix(".html"))
    return path.with_suffix(".html")


def test_page_shows_when_crawl_resumed(tmp_path):
    path, crawl = tmp_path / "a.run", crawl_of(pages=20)
    record(path, crawl)
    for start in (100_000.0, 200_000.0):
        writer = Writer(Journal(open_to_write(path)), crawl, start)
        writer.journal.skip(crawl)
        writer.begin(META, {}, start)
        writer.close(start + 1, "page_limit")
        with Record(path) as read:
            write_report(read, path.with_suffix(".html"))
        page = path.with_suffix(".html").read_text(encoding="utf-8")
        times = "once" if start == 100_000.0 else "2 times"
        assert f"Started 1970-01-01 00:01:40 UTC, resumed {times}." in page


def test_page_tells_figures_pages_and_settings(path, page):
    with Record(path) as read:
        last, pages = read.curve()[-1], read.last(3)
    assert f"{last.relevant:,} of {last.pages:,} pages" in page
    assert "It ended: all pages are fetched." in page
    for fetched in pages:
        assert fetched.title in page
        assert f'href="{fetched.final_url or fetched.url}"' in page
    assert "<dt>A</dt><dd><bdi>1</bdi></dd>" in page
    assert "Started 1970-01-01 00:01:40 UTC. " in page
    drawn = set(re.findall(r'data-figure="(\w+)"', page))
    figures = json.loads(re.search(r'id="figures">(.*?)</script>', page, re.S)[1])
    assert drawn == set(figures)


def test_page_lists_relevant_pages(path, page):
    with Record(path) as read:
        relevant = read.relevant(1_000)
    assert f"Search all {len(relevant)} relevant pages" in page
    listed = re.findall(r"<p><bdi>(text \d+)</bdi></p>", page)
    assert listed == [each.text for each in relevant] != []


def test_page_begins_with_pages_found(path, page):
    order = ["Pages found", 'class="tiles"', "Harvest over time", "The last ", "Settings"]
    order.append("What Q depends on, and the loss of the agent")
    places = [page.index(each, page.index("<h1>")) for each in order]
    assert places == sorted(places)
    with Record(path) as read:
        best, count = read.best(20), read.count()["relevant"]
    top = page[places[0] : places[1]].partition("<details class")[0]
    assert f"20 of {count}, of as many sites" in top
    assert re.findall(r"<bdi>(title \d+)</bdi></a>", top) == [each.title for each in best]
    assert top.count("why: <bdi>highest Q ") > 3


def test_folded_charts_are_the_learners(page):
    folded = page[page.index('<details class="more curves">') :]
    drawn = re.findall(r'data-figure="(\w+)"', folded)
    assert drawn[-1] == "loss"
    assert {name.partition("_")[0] for name in drawn[:-1]} == {"dependence"}
    assert len(drawn) == 10


def test_best_pages_are_of_many_domains(read):
    relevant, found = read.relevant(1_000), read.best(1_000)
    assert {each.step for each in found} == {each.step for each in relevant}
    domains = [each.domain for each in found]
    count = len(set(domains))
    assert len(set(domains[:count])) == count < len(domains)
    assert [each.step for each in read.best(5)] == [each.step for each in found[:5]]


def test_page_marks_changed_settings_and_has_the_webs_count(tmp_path):
    path, crawl = tmp_path / "a.run", crawl_of(pages=0)
    settings = {"A": "1", "B": "2"}
    web = {"pages": 20, "relevant": 15, "harvest": 0.75, "domains": 3}
    for start in ("The web", "Since the last start alone, the web"):
        writer = Writer.open(path, crawl, META | {"changed": '["B"]'}, settings, 1.0)
        writer.close(2.0, "page_limit", labels=json.dumps(web))
        with Record(path) as read:
            page = render(read)
        share = "75.0\N{NO-BREAK SPACE}%"
        count = f"15 relevant by its true labels, {share}, on 3 domains."
        assert f" {start} sent 20 pages, {count}" in page
        assert '<div class="changed"><dt>B</dt>' in page
        assert "<div><dt>A</dt>" in page


def test_page_asks_nothing_of_the_network(page):
    assert "default-src 'none'" in page
    without_links = re.sub(r"<a [^>]*>", "", page)
    assert not re.search(r'(src|href)="(?!data:)', without_links.split("<script")[0])
    assert "import(" not in page


def test_page_weighs_less_than_six_megabytes(path, tmp_path):
    with Record(path) as read:
        write_report(read, tmp_path / "a.html")
    assert (tmp_path / "a.html").stat().st_size < 6e6
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_what_the_web_says_is_text(hostile):
    page = hostile.read_text(encoding="utf-8").replace(plotly_script(), "")
    elements = Elements(page).found
    assert [tag for tag, _ in elements].count("script") == 3
    assert "img" not in {tag for tag, _ in elements}
    assert not [name for _, attrs in elements for name in attrs if name.startswith("on")]
    links = [attrs["href"] for tag, attrs in elements if tag == "a"]
    rels = {attrs["rel"] for tag, attrs in elements if tag == "a"}
    assert rels == {"noopener noreferrer nofollow"}
    assert links
    assert all(link.startswith("http://") for link in links)
    assert "javascript:alert(1)" in page, "it is shown, not linked"


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://a.test/", "https://a.test/"),
        ("http://a.test/", "http://a.test/"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        (" http://a.test/", ""),
    ],
)
def test_only_web_urls_are_links(url, link):
    assert web_link(url) == link


@pytest.mark.long
@pytest.mark.slow
def test_browser_draws_only_figures(path, hostile, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium here")
    with Record(path) as read:
        write_report(read, tmp_path / "good.html")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync"
    for file in (tmp_path / "good.html", hostile):
        dom = subprocess.run(
            [
                *(chromium, *flags.split(), "--disable-background-networking"),
                *("--disable-component-update", f"--user-data-dir={tmp_path / 'profile'}"),
                *("--window-size=1200,900", "--virtual-time-budget=20000", "--dump-dom"),
                file.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        ).stdout
        places = LexborHTMLParser(dom).css("[data-figure]")
        assert places
        assert all(place.css_first("svg.main-svg") for place in places), "those below are drawn too"
        assert "<title>owned" not in dom
        assert "Refused" not in dom


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("width", [420, 700, 1300])
def test_fetches_fit_into_the_window(path, tmp_path, width):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium here")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with Record(path) as read:
        write_report(read, tmp_path / "good.html")
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "good.html").as_uri())
        tables = page.locator(".scroll")
        fits = "boxes => boxes.every(box => box.scrollWidth <= box.clientWidth)"
        assert tables.count()
        assert tables.evaluate_all(fits)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        browser.close()


def test_report_works_without_tree(tmp_path):
    record(tmp_path / "a.run", crawl_of("plain", pages=20))
    with Record(tmp_path / "a.run") as read:
        page = render(read)
    assert "What Q depends on" not in page
    assert "The last 22 fetches" in page or "The last 2" in page


def test_record_of_nothing_has_a_report(tmp_path):
    crawl = crawl_of(pages=0)
    record(tmp_path / "a.run", crawl)
    with Record(tmp_path / "a.run") as read:
        page = render(read)
    assert "No page was fetched." in page
    assert "No relevant page.</p>" in page


def test_failures_alone_have_a_report(tmp_path):
    crawl = crawl_of(pages=5)
    writer = Writer.open(tmp_path / "a.run", crawl, META, {}, 100.0)
    decision = crawl.next()
    writer.note(crawl.book(decision.row, Failure("http_404")), 101.0)
    writer.close(102.0, "no_page")
    with Record(tmp_path / "a.run") as read:
        page = render(read)
    assert "No relevant page. The charts below show what was fetched" in page
    assert "The last fetch<" in page
    assert "http 404" in page


def test_record_lies_beside_output_or_job(tmp_path):
    output = tmp_path / "food.jsonl"
    assert record_path(output, None, "NOW", "food") == tmp_path / "food.run"
    assert record_path(output, str(tmp_path), "NOW", "food") == tmp_path / "tres.run"
    (tmp_path / "food.run").touch()
    assert record_path(output, None, "NOW", "food") == tmp_path / "food-NOW.run"
    assert str(record_path(tmp_path, None, "NOW", "food")) == "output/food-NOW.run"


def test_run_without_pages_gives_its_name_up(tmp_path):
    output, failed = tmp_path / "food.jsonl", tmp_path / "food.run"
    meta = META | {"started": "THEN"}
    Writer.open(failed, crawl_of(), meta, {}, 1.0).close(2.0, "no_page")
    (tmp_path / "food.html").write_text("report")
    output.write_text("{}\n")
    assert record_path(output, None, "NOW", "food") == tmp_path / "food-NOW.run"
    output.unlink()
    assert record_path(output, None, "NOW", "food") == failed
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"food-THEN.run", "food-THEN.html"}


def test_record_is_found_by_output(path, tmp_path):
    job = tmp_path / "job"
    job.mkdir()
    shutil.copy(path, job / "tres.run")
    assert find_record(path) == path
    assert find_record(job) == job / "tres.run"
    output = tmp_path / "pages.jsonl"
    output.touch()
    for name in ("pages.run", "pages-1.run", "pages-2.run"):
        writer = Writer.open(tmp_path / name, crawl_of(), META | {"output": "pages.jsonl"}, {}, 1.0)
        writer.close(2.0, "")
    (tmp_path / "pages-3.run").write_text("another's")
    assert find_record(output) == tmp_path / "pages-2.run"
    for nothing in (tmp_path, tmp_path / "pages-3.run.txt", tmp_path / "missing"):
        with pytest.raises(RecordError):
            Record(find_record(nothing))


def test_crawl_of_a_jobdir_is_found_from_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecordError, match="no crawl has left a record in this folder"):
        latest_record()
    output, record = Path("output", "soup.jsonl"), Path("jobs", "food", "tres.run")
    for place in (output.parent, record.parent):
        place.mkdir(parents=True)
    output.touch()
    Writer.open(record, crawl_of(), META | {"output": str(output.resolve())}, {}, 1.0).close(
        2.0, ""
    )
    assert latest_record() == find_record(output) == record
    old = Path("old", "soup.jsonl")  # of another crawl, whose record is gone
    old.parent.mkdir()
    old.touch()
    with pytest.raises(RecordError, match=r"no record of old/soup\.jsonl lies beside it"):
        find_record(old)


def test_command_places_the_report(path, tmp_path, capsys):
    copy = tmp_path / "a.run"
    shutil.copy(path, copy)
    for more in ((), ("-o", tmp_path / "b.html")):
        with pytest.raises(SystemExit, match="0"):
            command("report", copy, *more)
    written = [tmp_path / name for name in ("a.html", "b.html")]
    assert capsys.readouterr().out.split() == [str(file) for file in written]
    assert written[0].read_bytes() == written[1].read_bytes()


def test_report_error_is_one_line(tmp_path):
    text = tmp_path / "a.run"
    text.write_text("no record")
    for place in (text, tmp_path / "missing", tmp_path):
        with pytest.raises(SystemExit) as error:
            command("report", place)
        assert str(error.value).startswith("tres report: ")
        assert "\n" not in str(error.value)


def test_topics_are_compared(tmp_path):
    crawl, path = crawl_of("plain", pages=60), tmp_path / "both.run"
    both = {"topic": "food+sports", "output": str(tmp_path / "both.jsonl")}
    (tmp_path / "both.jsonl").touch()
    writer = Writer.open(path, crawl, META | both, {}, 100.0)
    for number, booking in enumerate(steps(crawl)):
        scores = {"food": 0.9, "sports": 0.2 + 0.5 * (number % 2)}
        writer.note(told(booking, "t", probability=0.9, scores=scores), 100.0 + number)
        writer.flush(100.0 + number)
    writer.close(500.0, "page_limit")
    with Record(path) as read:
        chart = next(each for each in charts(read) if each.name == "topics")
        food, sports = chart.data
        relevant = read.count()["relevant"]
        report = render(read)
        best = [read.best(1_000, topic) for topic in ("food", "sports")]
    assert "All of them are in <bdi><code>both.jsonl</code></bdi>, with their texts." in report
    assert [len(each) for each in best] == [food["y"][-1], sports["y"][-1]]
    assert (food["name"], sports["name"]) == ("food", "sports")
    assert food["y"][-1] == relevant > sports["y"][-1] > 0
    assert food["y"] == sorted(food["y"])
    assert "Relevant pages by topic" in report
    assert re.search(r"P\(relevant\) 0\.90 · food 0\.90 · sports 0\.[27]0", report)


def test_one_topic_has_no_chart_by_topic(path):
    with Record(path) as read:
        assert read.relevant_steps() == {}
        assert "topics" not in {each.name for each in charts(read)}
