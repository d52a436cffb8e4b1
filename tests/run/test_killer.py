"""Pages that were under way when the crawl was killed: the one that kills it is given up."""

import itertools

import pytest
from farmed_run import crawl_of, honest, steps

from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.writer import Writer

AT_ONCE = 4


class Run:
    """A crawl in a JOBDIR from one start to its end."""

    def __init__(self, directory, own=None):
        self.journal = Journal.open(directory, {})
        is_new = not self.journal.steps
        self.crawl = crawl_of(None, is_new=is_new)
        self.killers = [] if is_new else recover(self.journal, self.crawl, own=own)
        self.writer = Writer(self.journal, self.crawl, 1.0)
        self.asked = []

    def begin(self):
        self.writer.begin({}, {}, 1.0)
        return self

    def ask(self, count=AT_ONCE):
        """Lease samples as a crawl does that has so many requests under way."""
        while self.crawl.leased < count and (decision := self.crawl.next()) is not None:
            self.journal.lease(self.crawl, decision)
            self.asked.append(decision.row)
        return self.asked

    def fetch(self, count):
        for booking in itertools.islice(steps(self.crawl, honest), count):
            self.journal.lease(self.crawl, booking.decision)
            self.journal.book(self.crawl, booking)

    def book(self, row):
        self.journal.book(self.crawl, self.crawl.book(row, None))

    def kill(self):
        self.journal.database.close()

    def end(self):
        self.writer.finish(2.0, "shutdown")
        self.journal.database.close()


@pytest.fixture
def killed(tmp_path):
    """A JOBDIR of a crawl that was killed with pages under way; return it with their rows."""
    run = Run(tmp_path).begin()
    run.fetch(5)
    rows = run.ask()
    run.kill()
    return tmp_path, rows


def test_page_under_way_at_two_kills_is_given_up(killed):
    directory, rows = killed
    run = Run(directory).begin()
    assert run.killers == []
    again = run.ask()
    suspects = sorted(set(again) & set(rows))
    assert suspects == [min(rows)]  # one of them at a time
    run.kill()
    run = Run(directory).begin()
    assert run.killers == suspects
    assert run.crawl.store.closure.is_closed(run.crawl.store.url(suspects[0]))
    assert suspects[0] not in run.ask()
    run.kill()


def test_innocent_pages_are_fetched_one_after_the_other(killed):
    directory, rows = killed
    run = Run(directory).begin()
    for row in sorted(rows):
        assert sorted(set(run.ask(1)) & set(rows))[-1] == row
        run.book(row)
    run.kill()
    assert Run(directory).killers == []


def test_killer_stays_given_up(killed):
    directory, rows = killed
    kill_twice(directory)
    for _ in range(2):
        run = Run(directory).begin()
        assert min(rows) in run.killers
        run.end()


def test_killer_counts_for_its_domain(killed):
    directory, _ = killed
    for killers in (0, 1, 1):
        run = Run(directory).begin()
        run.ask()
        store = run.crawl.store
        assert len(run.killers) == killers
        for row in run.killers:
            domain = store["domain"][row]
            booked = [store["domain"][each] for each in rows_of_pages(run)]
            assert store.ledger.pages_of(store.ledger.names[domain]) == 1 + booked.count(domain)
        run.kill()


def test_killer_without_its_request_counts_too(killed):
    """The request of a spider's own is gone when its page is given up."""
    directory, _ = killed
    kill_twice(directory)
    run = Run(directory)
    run.kill()
    killers = run.killers
    assert killers
    for _ in range(2):
        run = Run(directory, own=set())
        assert run.killers == killers
        store = run.crawl.store
        names = [store.ledger.names[store["domain"][row]] for row in killers]
        booked = [store.ledger.names[store["domain"][row]] for row in rows_of_pages(run)]
        for name in names:
            assert store.ledger.pages_of(name) == names.count(name) + booked.count(name)
        run.end()


def kill_twice(directory):
    for _ in range(2):
        run = Run(directory).begin()
        run.ask()
        run.kill()


def rows_of_pages(run):
    return [row for (row,) in run.journal.database.execute("SELECT row FROM page")]


def test_only_kills_count(killed):
    directory, _ = killed
    for _ in range(3):
        run = Run(directory).begin()
        run.ask()
        run.end()
    assert Run(directory).killers == []


def test_kill_before_the_start_does_not_count(killed):
    directory, _ = killed
    for _ in range(3):
        Run(directory).kill()
    assert Run(directory).killers == []
