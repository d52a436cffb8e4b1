"""The writer and the reader of a record, used together."""

import sqlite3

import numpy as np
import pytest
from judged import judged, told
from recorded_run import META, crawl_of, record, steps

from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.feature import FEATURES
from tres_scrapy.report.crawl_report import render
from tres_scrapy.report.record import Record
from tres_scrapy.run import writer as module
from tres_scrapy.run.page_row import LONGEST
from tres_scrapy.run.reason import EXPLORED, GREEDY, OTHER, SEED, UNCERTAIN, Reasons, RuleBook
from tres_scrapy.run.run_file import RecordError, open_to_write
from tres_scrapy.run.writer import Writer


def test_every_booking_is_kept(recorded, read):
    pages = read.last(1000)[::-1]
    assert [page.step for page in pages] == list(range(1, len(recorded.bookings) + 1))
    store = recorded.crawl.store
    for number, (page, booking) in enumerate(zip(pages, recorded.bookings, strict=True)):
        row, x, reward, _ = booking.experience
        assert (page.row, page.reward, page.kind) == (row, reward, booking.kind)
        assert list(page.x) == list(FEATURES)
        assert list(page.x.values()) == x.tolist()
        assert (page.url, page.final_url or page.url) == (booking.decision.url, store.url(row))
        assert page.domain == store.ledger.names[store["domain"][row]]
        assert page.anchor == store.anchors[row]
        assert page.q_value == booking.decision.q_value
        assert (page.title, page.time, page.probability) == (f"title {number}", 100 + number, 0.75)
    assert any(page.final_url for page in pages)


def test_pages_can_be_read_in_parts(read):
    newest = read.last(2)
    assert [page.step for page in read.last(2, before=newest[1].step)] == [
        newest[1].step - 1,
        newest[1].step - 2,
    ]


def test_kinds_of_choices_are_told_apart(recorded, read):
    pages = read.last(1000)[::-1]
    assert pages[0].chosen == SEED
    assert {page.chosen for page in pages[1:]} == {GREEDY, UNCERTAIN}
    for page, booking in zip(pages, recorded.bookings, strict=True):
        if page.chosen == UNCERTAIN:
            choice = booking.decision.choice
            assert choice.rows[np.argmax(choice.bounds)] == page.row
            assert page.q_value < choice.q_values.max()
        if page.chosen == GREEDY:
            assert all(page.q_value >= rival.q_value for rival in read.rivals(page.step))


def test_exploration_is_recorded(tmp_path):
    path = tmp_path / "a.run"
    record(path, crawl_of(pages=30, link_model=False))
    with Record(path) as read:
        pages = read.last(1000)[::-1]
    assert {page.chosen for page in pages[1:20]} == {EXPLORED}
    assert EXPLORED not in {page.chosen for page in pages[20:]}


def test_rivals_are_best_leaves(recorded, read):
    for page, booking in zip(read.last(1000)[::-1], recorded.bookings, strict=True):
        choice = booking.decision.choice
        if choice is None or choice.q_values is None:
            assert read.rivals(page.step) == []
            continue
        best = {}
        for leaf, row, q in zip(*(values.tolist() for values in choice[1:4]), strict=True):
            if row != page.row:
                best[leaf] = max(q, best.get(leaf, -np.inf))
        expected = sorted(best.values(), reverse=True)[:10]
        assert [rival.q_value for rival in read.rivals(page.step)] == pytest.approx(
            expected, abs=1e-5
        )
        assert (page.samples, page.leaves) == (len(choice.rows), len(set(choice.leaves.tolist())))


def test_why_names_q_and_rule(read):
    seed, *others = read.last(1000)[::-1]
    assert read.why(seed) == "Seed."
    greedy = (page for page in reversed(others) if page.chosen == GREEDY)
    page = next(page for page in greedy if "likely" in read.rule(page.leaf, page.splits))
    said = read.why(page)
    assert f"Highest Q: {page.q_value:.2f}, best of {page.samples} links" in said
    assert f"Leaf: {read.rule(page.leaf, page.splits)}." in said
    assert " likely to " in said


def test_item_says_what_the_record_says():
    crawl = crawl_of(pages=60)
    reasons, random = Reasons(crawl), np.random.default_rng(0)
    said = []
    while (decision := crawl.next()) is not None:
        said.append(reasons.why(decision))
        urls = [f"http://{random.integers(9)}.test/{decision.row}/{i}" for i in range(6)]
        actions = random.random((6, 3)).astype(np.float32)
        crawl.book(
            decision.row, judged(float(random.random() < 0.5)), Outlinks(urls, urls, actions)
        )
    assert said[0] == "Seed."
    book = RuleBook(crawl.policy.tree.rules)
    last = crawl.policy.select()
    rule = book.words(last.leaf, last.choice.splits)
    assert reasons.why(last).endswith(f"Leaf: {rule}.")
    assert all(each.endswith(".") for each in said)


def test_trail_leads_from_the_seed(recorded, read):
    store = recorded.crawl.store
    for page in read.last(20):
        trail = read.trail(page)
        assert [hop.final_url or hop.url for hop in trail] == store.trail(page.row)
        assert trail[0].chosen == SEED


def test_relevant_pages_are_found_by_words(read):
    every = [page for page in read.last(1000)[::-1][::-1] if page.relevant]
    assert read.relevant(1000) == every
    assert read.relevant(2, before=every[0].step) == every[1:3]
    assert every[5] in read.relevant(1000, words=f"TITLE {every[5].text.upper()}")
    assert read.relevant(1000, words="% text") == []


def test_page_is_found_by_either_url(read):
    moved = next(page for page in read.last(1000)[::-1] if page.final_url)
    assert read.find(moved.url) == read.find(moved.final_url) == moved
    assert read.find("http://nowhere.test/") is None


def test_outcomes_and_domains_are_kept(recorded, read):
    crawl, count = recorded.crawl, read.count()
    assert count["relevant"] == crawl.relevant
    assert count["relevant"] + count["irrelevant"] == crawl.pages
    assert count["http_404"] == crawl.failures["http_404"]
    domains = read.domains(1000)
    _, pages, relevant = zip(*domains, strict=True)
    assert sum(pages) == crawl.pages
    assert sum(good > 0 for good in relevant) == crawl.store.ledger.relevant_domains
    assert list(relevant) == sorted(relevant, reverse=True)


def test_curve_ends_where_the_crawl_does(recorded, read):
    crawl, curve = recorded.crawl, read.curve()
    last = curve[-1]
    assert (last.pages, last.relevant, last.frontier) == (
        *(crawl.pages, crawl.relevant, crawl.store.pending),
    )
    assert (last.domains, last.leaves) == (
        *(crawl.store.ledger.relevant_domains, len(crawl.policy.tree)),
    )
    assert last.loss == crawl.loss
    assert [point.pages for point in curve] == sorted({point.pages for point in curve})


def test_tree_is_that_of_the_crawl(recorded, read):
    tree, root = recorded.crawl.policy.tree, read.tree()
    assert (root.leaves, root.fetched) == (len(tree), len(recorded.bookings))
    assert root.samples == len(tree.pool)
    assert root.reward == sum(booking.experience.reward for booking in recorded.bookings)
    assert root.split == pytest.approx(tree.rules[0].split)
    nodes = [root]
    for node in nodes:
        nodes += node.children
        if not node.children:
            rewards = tree.rewards(node.leaf)
            assert (node.fetched, node.reward) == (len(rewards), rewards.sum())


def test_dependence_is_mean_q(recorded, read):
    found = read.dependence()
    assert list(found) == list(FEATURES)
    x = np.array([booking.experience.x for booking in recorded.bookings[-module.DRAWN :]])
    anchor = FEATURES.index("anchor_probability")
    for value, q in found["anchor_probability"]:
        x[:, anchor] = value
        assert recorded.crawl.policy.value(x).mean() == pytest.approx(q, abs=1e-5)


def test_missing_tree_leaves_fields_empty(tmp_path):
    record(tmp_path / "a.run", crawl_of("plain", pages=40))
    with Record(tmp_path / "a.run") as read:
        pages = read.last(10)
        for page in pages:
            assert (page.leaf, page.q_value) == (None, None)
            assert read.rivals(page.step) == []
            assert read.why(page).endswith(".")
        assert {page.chosen for page in pages} == {OTHER}
        assert read.tree() is None
        assert read.dependence() == {}
        assert read.curve()[-1].leaves is None


def test_record_is_readable_while_written(tmp_path):
    path, crawl = tmp_path / "a.run", crawl_of(pages=60)
    writer = Writer.open(path, crawl, META, {}, 100.0)
    bookings = steps(crawl)
    with Record(path) as read:
        for number in range(1, 6):
            for _ in range(10):
                writer.note(next(bookings), 100.0 + number)
            assert len(read.last(1000)) == 10 * (number - 1), "what waits is not yet there"
            writer.flush(100.0 + number)
            assert len(read.last(1000)) == 10 * number
            assert len(read.rules.rules) == crawl.policy.tree.splits
            assert "ended" not in read.meta()
        with read.moment():
            before = read.count()
            writer.note(next(bookings), 107.0)
            writer.flush(107.0)
            assert read.count() == before
        assert read.count() != before
        writer.close(200.0, "shutdown", gone="a.test (http_503)")
        assert read.meta()["gone"] == "a.test (http_503)"
        assert (read.meta()["ended"], read.meta()["reason"]) == ("200.000", "shutdown")


def test_finished_record_is_one_file(recorded):
    assert [file.name for file in recorded.path.parent.iterdir()] == ["food.run"]


@pytest.mark.slow
def test_record_size_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RIVALS_KEPT", 20)
    crawl = crawl_of(pages=150)
    writer = Writer.open(tmp_path / "a.run", crawl, META, {}, 100.0)
    for booking in steps(crawl):
        writer.note(told(booking, "long " * 10_000), 100.0)
        writer.flush(101.0)
    writer.close(102.0, "")
    with Record(tmp_path / "a.run") as read:
        newest = read.last(1)[0].step
        assert not read.rivals(newest - 20)
        assert read.rivals(newest - 10)
        assert max(len(page.title) for page in read.last(1000)) == LONGEST
    assert (tmp_path / "a.run").stat().st_size < 500_000  # 150 pages with their texts, 900 links


def test_what_is_no_record_is_said(tmp_path, recorded):
    names = ("missing", "text", "other", "empty")
    missing, text, other, empty = (tmp_path / name for name in names)
    empty.touch()
    text.write_text("no database at all " * 100)
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE page (step)")
    connection.close()
    for path, said in (
        (missing, "there is no record"),
        (empty, "holds no record of a crawl yet"),
        (tmp_path, "there is no record"),
        (text, "is damaged: file is not a database"),
        (other, "another program's file, not a record of a crawl"),
    ):
        with pytest.raises(RecordError, match=said):
            Record(path)
    assert text.read_text().startswith("no database")


def changed(recorded, tmp_path, statement):
    path = tmp_path / "changed.run"
    path.write_bytes(recorded.path.read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    return path


@pytest.mark.parametrize(("version", "age"), [(99, "newer"), (1, "older")])
def test_record_of_other_version_is_refused(recorded, tmp_path, version, age):
    path = changed(recorded, tmp_path, f"PRAGMA user_version = {version}")
    for use in (Record, open_to_write):
        with pytest.raises(RecordError, match=f"{age} version of TRES"):
            use(path)


def test_tables_of_another_are_refused(recorded, tmp_path):
    path = changed(recorded, tmp_path, "CREATE TABLE own (value)")
    with pytest.raises(RecordError, match="tables that TRES did not create"):
        Record(path)


@pytest.mark.parametrize(
    ("damage", "use"),
    [
        ("UPDATE page SET x = x'00'", lambda read: read.last(1)),
        ("UPDATE rivals SET value = '[1]'", lambda read: read.rivals(read.last(1)[0].step)),
        ("UPDATE split SET feature = 80", lambda read: read.rules),
        ("UPDATE split SET leaf = 4000", lambda read: read.rules),
        ("UPDATE snapshot SET value = '{}'", lambda read: read.tree()),
        ("UPDATE snapshot SET value = 'no'", lambda read: read.dependence()),
        ("UPDATE page SET leaf = 4000", lambda read: read.why(read.last(1)[0])),
        ("UPDATE meta SET value = 'now' WHERE name = 'starts'", lambda read: read.starts()),
        ("UPDATE meta SET value = '1e99' WHERE name = 'starts'", render),
        ("UPDATE page SET time = 1e99", render),
        ("UPDATE curve SET time = 'Infinity' + 9e999", render),
    ],
)
def test_damage_is_told_in_one_line(recorded, tmp_path, damage, use):
    path = changed(recorded, tmp_path, damage)
    with Record(path) as read, pytest.raises(RecordError, match="cannot be read"):
        use(read)


def test_foreign_link_is_not_written(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (tmp_path / "a.run").symlink_to(elsewhere)
    with pytest.raises(RecordError, match="not a plain file"):
        open_to_write(tmp_path / "a.run")
    assert elsewhere.read_text() == "mine"
