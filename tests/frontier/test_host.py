"""Hosts of the frontier."""

from tres_scrapy.config.limit import FrontierLimits
from tres_scrapy.frontier.host import Hosts
from tres_scrapy.frontier.ledger import DomainLedger


def test_host_is_noted_once_however_often_it_is_given_up():
    hosts = Hosts(DomainLedger(None, inlinks=False, limits=FrontierLimits()))
    for name in "abc":
        hosts.number_of(f"{name}.test")
    hosts.note_given_up([2])  # by an earlier run
    for host in (1, 2, 1):
        hosts.give_up(host)
    hosts.note_given_up([1, 0, 0])
    assert [*hosts.ever_given_up] == [2, 1, 0]
    assert hosts.gone == {"b.test", "c.test"}
