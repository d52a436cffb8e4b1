import sqlite3

import pytest

from tres_scrapy.refresh.main_text import copy_of
from tres_scrapy.refresh.store import Host, PageRow, Store
from tres_scrapy.refresh.visit import VisitItem
from tres_scrapy.url.message import TresError


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    yield store
    store.close()


def page(url="http://a.test/", **columns):
    return PageRow(0, url, 1.0, 5.0, 5.0, **columns)


def booked(store, visit, row):
    item = VisitItem(row.url, "changed", visit, 200)
    store.book(item, 9.0, [1, 2], row, {"a.test": Host(1, 0)})
    return item


def test_pages_come_back_as_they_were(store):
    first = page(copy=copy_of("T", "text", loose=True), etag='"1"', changes=2, gone=True)
    assert store.add_pages([first, page("http://b.test/"), page()]) == 2
    rows = store.pages()
    assert [row.url for row in rows] == ["http://a.test/", "http://b.test/"]
    assert (rows[0].copy, rows[0].etag, rows[0].changes, rows[0].gone) == (
        first.copy,
        '"1"',
        2,
        True,
    )
    assert rows[1].copy is None


def test_known_page_keeps_its_columns(store):
    store.add_pages([page(changes=3)])
    assert store.add_pages([page()]) == 0
    assert store.pages()[0].changes == 3


def test_visit_is_booked_whole(store):
    store.add_pages([page()])
    (row,) = store.pages()
    run = store.begin_run(1.0, 10, None)
    visit = store.send(run.id, row.id, 8.0, conditional=True)
    row.changes = 1
    item = booked(store, visit, row)
    assert store.pages()[0].changes == 1
    assert store.hosts() == {"a.test": Host(1, 0)}
    assert store.outbox() == [item]
    assert store.links() == {1, 2}
    assert store.history() == [(row.id, 9.0, "changed", 1)]
    store.delivered(visit)
    assert store.outbox() == []


def test_failed_visit_leaves_no_trace(store):
    store.add_pages([page()])
    (row,) = store.pages()
    run = store.begin_run(1.0, 10, None)
    visit = store.send(run.id, row.id, 8.0, conditional=False)
    booked(store, visit, row)
    row.changes = 7
    with pytest.raises(sqlite3.Error):
        booked(store, visit, row)  # its item is in the outbox already
    assert store.pages()[0].changes == 0


def test_run_stays_open_until_it_ends(store):
    assert store.open_run() is None
    run = store.begin_run(1.0, 10, 60.0)
    assert store.open_run() == run
    assert store.last_started() is None
    store.end_run(run.id, 5.0)
    assert store.open_run() is None
    assert store.last_started() == 1.0


def test_new_run_ends_the_old(store):
    first = store.begin_run(1.0, 10, None)
    second = store.begin_run(2.0, 20, None)
    assert second.id != first.id
    assert store.open_run() == second


def test_killed_requests_count_as_made(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.add_pages([page()])
    run = store.begin_run(1.0, 10, None)
    store.send(run.id, 1, 2.0, conditional=False)
    taken = store.send(run.id, 1, 3.0, conditional=False)
    store.take_back(taken)
    store.close()
    again = Store(tmp_path / "s.sqlite")
    assert again.lose_visits() == 1
    assert again.visits_of(run.id) == 1
    assert again.lose_visits() == 0
    again.close()


def test_store_is_for_one_process(tmp_path, store):
    store.begin_run(1.0, 10, None)
    with pytest.raises(TresError, match="another process is using"):
        Store(tmp_path / "s.sqlite")


def test_other_files_are_left_alone(tmp_path):
    other = tmp_path / "o.sqlite"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    before = other.read_bytes()
    with pytest.raises(TresError, match="not a store of a collection"):
        Store(other)
    assert other.read_bytes() == before
    (tmp_path / "text").write_text("no database, but long enough to be looked at twice" * 20)
    with pytest.raises(TresError, match="not a database"):
        Store(tmp_path / "text")
    with pytest.raises(TresError, match="unable to open"):
        Store(tmp_path / "no" / "s.sqlite")
