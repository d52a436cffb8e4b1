"""Links of one site that fail on another end its own links, not the other site."""

import numpy as np

from tres_scrapy.config.limit import FrontierLimits
from tres_scrapy.frontier.ledger import DomainLedger

EVIL, GOOD, LATE = range(3)


def ledger_of(failures=20):
    ledger = DomainLedger(limits=FrontierLimits(failures=failures))
    for name in ("evil.test", "good.test", "late.test"):
        ledger.id_of(name)
    return ledger


def given_up(ledger, domain):
    return bool(ledger.given_up(np.array([domain], np.int32))[0])


def ended(ledger, finder, domain):
    return bool(ledger.ended(np.array([finder], np.int32), np.array([domain], np.int32))[0])


def test_failures_end_the_links_of_their_finder():
    ledger = ledger_of()
    for count in range(20):
        assert not ended(ledger, EVIL, GOOD), count
        ledger.book_failure(GOOD, finder=EVIL)
    assert ended(ledger, EVIL, GOOD)
    assert not given_up(ledger, GOOD)
    assert not ended(ledger, LATE, GOOD)
    assert not ended(ledger, EVIL, LATE)
    assert ledger.domains_given_up == 1


def test_own_links_that_fail_end_a_domain():
    ledger = ledger_of()
    for _ in range(20):
        ledger.book_failure(GOOD, finder=GOOD)
    assert given_up(ledger, GOOD)


def test_links_of_many_sites_that_fail_end_a_domain():
    ledger = ledger_of()
    finders = [ledger.id_of(f"site{i}.test") for i in range(10)]
    for count, finder in enumerate([*finders, *finders]):
        assert not given_up(ledger, GOOD), count
        ledger.book_failure(GOOD, finder=finder)
    assert given_up(ledger, GOOD)


def test_page_ends_the_row_of_failures():
    ledger = ledger_of()
    for _ in range(3):
        for _ in range(19):
            ledger.book_failure(GOOD, finder=EVIL)
        ledger.book_page(GOOD, 1.0)
    assert not ended(ledger, EVIL, GOOD)
    assert not ledger._records["failures"][GOOD]


def test_dead_hosts_end_the_links_of_their_finder():
    ledger = ledger_of()
    counted = [ledger.dead_hosts.note(GOOD, EVIL, own=False) for _ in range(20)]
    assert sum(counted) == 2
    assert ended(ledger, EVIL, GOOD)
