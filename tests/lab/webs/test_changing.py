import asyncio
import json
from collections import Counter
from copy import copy
from http.client import HTTPConnection
from io import StringIO

import numpy as np
import pytest
from webs.changing import VALIDATORS, ChangingWeb

from tres_scrapy.lab.webs.proxy import Proxy
from tres_scrapy.lab.webs.web import Count

WEB = ChangingWeb(2_000, seed=0, day=100.0, epoch=0.0, clock=lambda: 0.0)


class Clock:
    def __init__(self, now=0.0):
        self.now = now

    def __call__(self):
        return self.now


def web_at(now=0.0):
    web, clock = copy(WEB), Clock(now)
    web._clock, web._fetches = clock, Counter()
    return web, clock


def page_of(kind):
    """Return a page that changes about ten times a day, on a host with the given validators."""
    shelf = WEB.shelf
    fit = shelf.validator[shelf.host] == VALIDATORS.index(kind)
    pages = np.flatnonzero(fit & np.isinf(WEB.changes.vanishes))
    return int(pages[np.argmin(np.abs(np.log(shelf.rates[pages] / 10)))])


def asked(web, page, **fields):
    """Repeat a request until the answer is not a temporary error."""
    for _ in range(5):
        names = {name.replace("_", "-"): value for name, value in fields.items()}
        answer = web.respond(web.shelf.urls[page], names)
        if answer.status < 500:
            return answer
    raise AssertionError


def test_rates_have_a_heavy_tail():
    low, high = np.percentile(WEB.shelf.rates, [10, 90])
    assert high > 500 * low


def test_changes_follow_the_rate():
    page = page_of("honest")
    times = WEB.changes.times(page, 200.0)
    assert len(times) == pytest.approx(200 * WEB.shelf.rates[page], rel=0.2)
    assert times == sorted(times)
    assert WEB.changes.times(page, 3.0) == [time for time in times if time <= 3.0]


def test_changes_follow_the_seed():
    again, other = ChangingWeb(2_000, epoch=0.0), ChangingWeb(2_000, seed=1, epoch=0.0)
    assert again.changes.times(7, 5.0) == WEB.changes.times(7, 5.0)
    assert again.shelf.urls == WEB.shelf.urls
    assert other.shelf.urls != WEB.shelf.urls


@pytest.mark.parametrize(
    ("kind", "before", "after"),
    [
        ("honest", 304, 200),
        ("etag", 304, 200),
        ("date", 304, 200),
        ("none", 200, 200),
        ("restless", 200, 200),
        ("deaf", 200, 200),
        ("lying", 304, 304),
    ],
)
def test_validators_are_honest_or_not(kind, before, after):
    web, clock = web_at(1_000.0)
    page = page_of(kind)
    headers = dict(asked(web, page).headers)
    fields = {}
    if "ETag" in headers:
        fields["if_none_match"] = headers["ETag"]
    if "Last-Modified" in headers:
        fields["if_modified_since"] = headers["Last-Modified"]
    assert asked(web, page, **fields).status == before
    following = next(time for time in web.changes.times(page, 99.0) if time > 10.0)
    clock.now = 100 * following + 2
    assert asked(web, page, **fields).status == after


def test_date_hides_the_same_second():
    web, clock = web_at()
    page = page_of("date")
    clock.now = 100 * web.changes.times(page, 50.0)[3] + 0.5
    assert "Last-Modified" not in dict(asked(web, page).headers)


def test_every_fetch_differs_superficially():
    web, _ = web_at()
    page = page_of("none")
    assert asked(web, page).body != asked(web, page).body


def test_page_vanishes_and_comes_back():
    changes = WEB.changes
    page = int(np.flatnonzero(np.isfinite(changes.returns))[0])
    web, clock = web_at()
    status = []
    for day in (changes.vanishes[page] - 0.01, changes.vanishes[page], changes.returns[page]):
        clock.now = 100 * day
        status.append(asked(web, page).status)
    assert status == [200, int(changes.status[page]), 200]
    assert 0 < np.isfinite(changes.vanishes).mean() < 0.12


@pytest.mark.long
@pytest.mark.slow
def test_errors_are_temporary():
    web, _ = web_at()
    status = [web.answer(url).status for url in web.shelf.urls]
    assert 0 < sum(each in {500, 503} for each in status) < 0.03 * len(status)


def test_index_lists_new_articles():
    web, clock = web_at()
    index = next(page for page in range(0, 2_000, 10) if 1 < web.shelf.rates[page] < 20)
    clock.now = 100 * (web.changes.times(index, 99.0)[2] + 0.001)
    section = index // 10
    body = asked(web, index).body.decode()
    assert [web.shelf.article(section, number) in body for number in range(4)] == [1, 1, 1, 0]
    assert web.answer(web.shelf.article(section, 2)).status == 200
    assert web.answer(web.shelf.article(section, 3)).status == 404


def test_hosts_and_pages_that_are_none():
    assert WEB.answer("http://nowhere.test/").status == 502
    assert WEB.answer(WEB.shelf.urls[0].rpartition("/")[0] + "/new-0-99.html").status == 404
    assert WEB.answer(f"http://{WEB.shelf.names[0]}/robots.txt").kind == "robots"
    assert WEB.labels([WEB.shelf.urls[0], "http://x.test/"]) == [True, False]


def test_log_knows_conditional_requests():
    web, _ = web_at(1_000.0)
    page = page_of("etag")
    url, log = web.shelf.urls[page], StringIO()

    async def talk():
        proxy = Proxy(web, Count(log))
        port = await proxy.start(0)

        def ask(headers):
            connection = HTTPConnection("127.0.0.1", port)
            connection.request("GET", url, headers=headers)
            answer = connection.getresponse()
            connection.close()
            return answer.status, answer.headers.get("ETag")

        status, tag = await asyncio.to_thread(ask, {})
        assert status == 200
        assert await asyncio.to_thread(ask, {"If-None-Match": tag}) == (304, tag)
        await proxy.stop()

    asyncio.run(talk())
    rows = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [row["status"] for row in rows] == [200, 304]
    assert rows[0]["version"] == rows[1]["version"] == len(web.changes.times(page, 10.0))
    assert rows[0]["day"] == 10.0
