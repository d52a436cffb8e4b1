"""The link model in a record: parts of links, names, weights, and what comes of them."""

import json
import sqlite3
from html import escape
from types import SimpleNamespace

import numpy as np
import pytest
from linked_run import META, crawl_of, html_of, record, steps

from tres_scrapy.frontier.feature import LINK
from tres_scrapy.links.code import BITS, CueGroup, coded, url_codes, url_texts
from tres_scrapy.live.answering import Answering
from tres_scrapy.live.view import View
from tres_scrapy.report.chart import plotly_script
from tres_scrapy.report.crawl_chart import charts
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.explanation import FetchExplanation
from tres_scrapy.report.learned_chart import average_precision
from tres_scrapy.report.record import Record
from tres_scrapy.run import snapshot
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.page_row import FETCHED
from tres_scrapy.run.reason import Reasons, parts_of, phrase_of
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.run_file import NAME, RecordError
from tres_scrapy.run.snapshot import WEIGHTS, strongest
from tres_scrapy.run.writer import Writer
from tres_scrapy.url.message import TresError

HOSTILE = "<img/src=x/onerror=alert(1)>"


def made(path, crawl):
    return SimpleNamespace(path=path, crawl=crawl, bookings=record(path, crawl))


@pytest.fixture(scope="module")
def linked(tmp_path_factory):
    return made(tmp_path_factory.mktemp("run") / "food.run", crawl_of())


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A crawl with `link_model=0`."""
    path = tmp_path_factory.mktemp("run") / "food.run"
    return made(path, crawl_of(pages=60, enabled=False))


@pytest.fixture
def read(linked):
    with Record(linked.path) as found:
        yield found


def test_link_of_each_choice_is_kept(linked, read):
    seed, *pages = read.last(1000)[::-1]
    assert seed.link == []
    names = linked.crawl.store.names
    for page, booking in zip(pages, linked.bookings[1:], strict=True):
        said = booking.decision.choice.said
        assert said.url == page.url
        assert page.link == parts_of(said, names)
    assert sum(len(page.link) > 1 for page in pages) > 100
    spoken = {(part.group, part.text) for page in pages for part in page.link if part.adds > 0}
    assert spoken & {("url", "soup"), ("anchor", "soup"), ("anchor", "tomato")}


def test_weights_are_named_and_learned(linked, read):
    found, model = read.link_weights(), linked.crawl.policy.link_learner.model
    for group, texts in (("anchor", "tomato soup"), ("heading", "recipes"), ("around", "ladle")):
        weights = {each.text: each for each in found[group]}
        for text in texts.split():
            (code,) = coded(CueGroup[group.upper()], [text])
            assert weights[text].weight == pytest.approx(model.weights[code], abs=1e-3)
            assert weights[text].weight > 0.1
            assert weights[text].relevant == weights[text].fetched
    assert {each.text for each in found["anchor"] if each.weight < 0} == {"diesel", "engine"}
    assert any("soup" in each.text or "oup" in each.text for each in found["url"])
    assert any(each.text.endswith("/soup/") for each in found["host"])
    assert "P(relevant) of the anchor text" in {each.text for each in found["feature"]}


def test_counts_are_those_of_fetched_links(linked, read):
    (code,) = coded(CueGroup.ANCHOR, ["engine"])
    fetched = [booking for booking in linked.bookings[1:] if "/cars/" in booking.decision.url]
    engine = next(each for each in read.link_weights()["anchor"] if each.text == "engine")
    assert engine.fetched == len(fetched) == linked.crawl.policy.link_learner.fetched[code]
    assert engine.relevant == 0


def test_rare_words_are_left_out(linked):
    learner, names = linked.crawl.policy.link_learner, linked.crawl.store.names
    for group, weights in strongest(learner, names).items():
        if group != "feature":
            assert all(each.fetched >= FETCHED for each in weights)
        assert [each.weight for each in weights] == sorted(
            (each.weight for each in weights), reverse=True
        )
        assert len(weights) <= 2 * WEIGHTS


@pytest.mark.parametrize(
    ("group", "text", "other", "alike"),
    [
        (CueGroup.URL, "/soup", "oup/", True),
        (CueGroup.URL, "/soup", "cars", False),
        (CueGroup.ANCHOR, "soup", "soups", False),
    ],
)
def test_like_texts_are_shown_once(group, text, other, alike):
    assert snapshot._alike(group, text, other) is alike


def test_predictions_are_from_before_the_fetch(linked, read):
    predicted, relevant = read.predictions()
    bookings = linked.bookings[1:]
    assert predicted.tolist() == [booking.experience.x[LINK] for booking in bookings]
    assert relevant.tolist() == [booking.experience.reward > 0 for booking in bookings]
    assert average_precision(predicted, relevant) > relevant.mean()


def test_item_mentions_what_the_record_says(tmp_path):
    crawl = crawl_of(pages=40)
    reasons, said = Reasons(crawl), {}
    writer = Writer.open(tmp_path / "a.run", crawl, META, {}, 100.0)
    choose = crawl.next

    def next_():
        decision = choose()
        if decision is not None:
            said[decision.row] = reasons.why(decision)
        return decision

    crawl.next = next_
    for booking in steps(crawl):
        writer.note(booking, 100.0)
    writer.close(101.0, "page_limit")
    with Record(tmp_path / "a.run") as read:
        pages = read.last(100)[::-1]
        assert [read.why(page) for page in pages[:5]] == [said[page.row] for page in pages[:5]]
        assert pages[5].link
        assert f"Link: {phrase_of(pages[-1].link)}. Leaf: " in read.why(pages[-1])


def test_names_survive_a_kill(tmp_path):
    journal, crawl = Journal.open(tmp_path, {}), crawl_of(pages=80)
    bookings = steps(crawl)
    for _ in range(30):
        journal.book(crawl, next(bookings))
    journal.commit()
    journal.database.close()  # as a kill does
    known = crawl.store.names
    journal, again = Journal.open(tmp_path, {}), crawl_of(is_new=False)
    recover(journal, again)
    names = again.store.names
    assert len(names) == len(known) > 50
    assert all(names.text(code) == text for code, text in known.since(0))
    names.learn([(CueGroup.AROUND << BITS | 5, "new")])
    journal.save(again)
    journal.close()
    path = tmp_path / NAME
    with sqlite3.connect(path) as connection:
        found = dict(connection.execute("SELECT code, text FROM name"))
    connection.close()
    assert found[CueGroup.AROUND << BITS | 5] == "new"
    assert found.keys() == {code for code, _ in names.since(0)}


def test_common_runs_of_fetched_urls_are_named(linked):
    names, fetched = linked.crawl.store.names, linked.crawl.policy.link_learner.fetched
    urls = [booking.decision.url for booking in linked.bookings[1:]]
    texts = {
        code: text
        for url in urls
        for code, text in zip(url_codes([url])[0].tolist(), url_texts(url), strict=True)
    }
    assert all(names.text(code) == texts[code] for code in texts if fetched[code] >= FETCHED)
    assert any(names.text(code) is None for code in texts), "a rare run needs no name"


def test_explanation_says_what_spoke(read):
    page = read.last(1)[0]
    said = str(FetchExplanation(read, page.url))
    assert "What the link says, and what that adds to the logit of its P(relevant):" in said
    for part in page.link:
        assert f"{part.adds:+6.2f}   {part.label}" in said
    assert "Link:" not in said, "it is said once"
    found = json.loads(FetchExplanation(read, page.url).as_json())
    assert found["link"] == [part._asdict() for part in page.link]


def test_live_page_shows_what_spoke(linked, read, tmp_path):
    view, page = View(linked.path, Answering(tmp_path / "answers.txt", "")), read.last(1)[0]
    found = json.loads(view.page(page.step))["link"]
    assert found == [{"text": part.label, "adds": part.adds} for part in page.link]
    assert "Link: " in json.loads(view.state({}, -1))["recent"][0]["why"]
    names = {chart["name"] for chart in json.loads(view.figures(-1))["charts"]}
    assert {"links_anchor", "links_url", "calibration", "precision"} <= names
    view.close()


def test_report_shows_words_and_calibration(read):
    page = render(read).replace(plotly_script(), "")
    assert "<h2>What links say</h2>" in page
    for name in ("links_anchor", "links_heading", "links_around", "calibration", "precision"):
        assert f'data-figure="{name}"' in page
    drawn = {chart.name: chart for chart in charts(read)}
    anchor = drawn["links_anchor"]
    assert anchor.data[0]["customdata"][0][0].startswith("anchor &quot;")
    assert "fetched links were relevant" in anchor.data[0]["customdata"][0][1]
    json.dumps([chart.as_figure() for chart in drawn.values()], allow_nan=False)


def test_calibration_is_that_of_bins(read):
    predicted, relevant = read.predictions()
    chart = next(chart for chart in charts(read) if chart.name == "calibration")
    points = chart.data[1]
    found = list(zip(points["x"], points["y"], points["customdata"], strict=True))
    expected = []
    for low in np.arange(10) / 10:
        inside = (predicted >= low) & (predicted < low + 0.1 if low < 0.9 else predicted <= 1)
        if inside.any():
            means = predicted[inside].mean(), relevant[inside].mean()
            expected.append((*np.round(means, 4).tolist(), str(inside.sum())))
    assert [each[2] for each in found] == [each[2] for each in expected]
    assert np.array([each[:2] for each in found]) == pytest.approx(
        np.array([each[:2] for each in expected]), abs=1e-3
    )


def test_average_precision_is_exact():
    relevant = np.array([True, False, True, False])
    assert average_precision(np.array([0.9, 0.8, 0.7, 0.1]), relevant) == (1 + 2 / 3) / 2
    assert average_precision(np.array([0.1, 0.2, 0.3, 0.4]), relevant) == (1 / 2 + 2 / 4) / 2
    assert average_precision(np.array([0.5]), np.array([False])) == 0.0


def test_nothing_is_shown_without_the_model(plain):
    names = plain.crawl.store.names
    with Record(plain.path) as read:
        assert {tuple(page.link) for page in read.last(1000)[::-1]} == {()}
        assert read.link_weights() == {}
        assert [len(column) for column in read.predictions()] == [0, 0]
        assert not any("Link:" in read.why(page) for page in read.last(1000)[::-1])
        page = render(read).replace(plotly_script(), "")
        drawn = {chart.name for chart in charts(read)}
        said = str(FetchExplanation(read, read.last(1)[0].url))
    assert "What links say" not in page
    assert not {name for name in drawn if name.startswith("links_")}
    assert not drawn & {"calibration", "precision"}
    assert "What the link says" not in said
    assert names.since(0)


def test_short_crawl_has_no_calibration(tmp_path):
    path = tmp_path / "a.run"
    record(path, crawl_of(pages=10))
    with Record(path) as read:
        assert read.predictions()[0].size
        assert not {chart.name for chart in charts(read)} & {"calibration", "precision"}


def test_phrase_of_hostile_pages_are_text(tmp_path):
    """A URL and an anchor text that look like markup stay text."""

    def html(row):
        shown = html_of(row).replace("tomato soup", f"{escape(HOSTILE)} soup")
        return shown.replace(f"/{row}-", f"/&lt;script&gt;{row}-")

    path = tmp_path / "a.run"
    record(path, crawl_of(pages=60), html)
    with Record(path) as read:
        texts = {each.text for weights in read.link_weights().values() for each in weights}
        page = render(read).replace(plotly_script(), "")
    assert {"onerror", "alert"} <= texts, "it was learned"
    assert "<img" not in page
    assert "<script>-" not in page
    figures = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    assert "<img" not in json.dumps(figures), "Plotly reads some tags"


def changed(linked, tmp_path, statement):
    path = tmp_path / "changed.run"
    path.write_bytes(linked.path.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    return path


@pytest.mark.parametrize(
    ("damage", "use"),
    [
        ("UPDATE page SET link = '[1]'", lambda read: read.last(1)),
        ("UPDATE page SET link = 'no'", lambda read: read.last(1)),
        ('UPDATE page SET link = \'[["a", "b", NaN]]\'', lambda read: read.last(1)),
        ("UPDATE page SET x = x'00'", lambda read: read.predictions()),
        ("UPDATE page SET x = x'0000c07f'", lambda read: read.predictions()),
        ("UPDATE snapshot SET value = '[1]'", lambda read: read.link_weights()),
        ("UPDATE snapshot SET value = '{\"url\": [[1, NaN, 1, 1]]}'", render),
    ],
)
def test_damage_is_told_in_one_line(linked, tmp_path, damage, use):
    path = changed(linked, tmp_path, damage)
    with Record(path) as read, pytest.raises(RecordError, match="cannot be read"):
        use(read)


@pytest.mark.parametrize("value", ["-1, 'a'", "99999999, 'a'", "1048575, x'00'"])
def test_damaged_names_are_refused(linked, tmp_path, value):
    path = changed(linked, tmp_path, f"INSERT INTO name VALUES ({value})")  # noqa: S608 - our own
    path.rename(tmp_path / NAME)
    journal = Journal.open(tmp_path, {})
    with pytest.raises(TresError, match="damaged"):
        recover(journal, crawl_of(is_new=False))
    journal.close()
