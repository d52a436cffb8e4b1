"""Which requests of a spider are samples of the frontier, and which are Scrapy's."""

from types import SimpleNamespace

import numpy as np
import pytest
from scrapy import Request

from tres_scrapy.extensions.own_request import OwnRequests
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore


def page(_):
    """Take a page."""


def call(_):
    """Take an answer of an API."""


@pytest.fixture
def store():
    return SampleStore(DomainLedger())


@pytest.fixture
def requests(store):
    return OwnRequests(store, None, None, follows_all=False)


def note(requests, store, *wanted):
    """Book a page that asks for these; return the URLs that are fetched at once."""
    by_url = {request.url: request for request in wanted}
    actions = np.zeros((len(by_url), 3), dtype=np.float32)
    rows = store.add(NO_PARENT, Outlinks([*by_url], [""] * len(by_url), actions))
    booking = SimpleNamespace(experience=SimpleNamespace(row=-1), outlinks=rows)
    return [store.url(row) for row in requests.note_booking(booking, by_url)]


def test_first_request_of_each_callback_is_fetched_at_once(requests, store):
    first = [Request(f"http://a.test/{n}", page) for n in range(3)]
    calls = [Request(f"http://a.test/api/{n}", call) for n in range(3)]
    assert note(requests, store, *first, *calls) == [first[0].url, calls[0].url]
    assert note(requests, store, Request("http://a.test/9", page)) == []


def test_calls_of_an_api_are_known_by_the_last_answer(requests, store):
    calls = [Request(f"http://a.test/api/{n}", call) for n in range(3)]
    note(requests, store, Request("http://a.test/", page), *calls)
    asked = [Request("http://a.test/api/9", call), Request("http://b.test/api/9", call)]
    assert all(map(requests.url_of_sample, asked))
    found = requests.note_answer(calls[0], is_page=False)
    assert [store.url(row) for row in found] == [each.url for each in calls]  # those that wait too
    assert requests.note_answer(calls[1], is_page=False) == []
    assert not any(map(requests.url_of_sample, asked))  # at any host,
    requests.note_answer(asked[1], is_page=True)
    assert requests.url_of_sample(asked[1])  # but those where the last answer was a page
    assert requests.url_of_sample(asked[0]) is None
    assert requests.url_of_sample(Request("http://a.test/8", page))
