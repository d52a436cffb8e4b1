import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response, TextResponse

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.limit import ScopeOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.downloader.request import LEASE, OWN, SAMPLE, VISIT
from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.frontier.admission import Outlinks, Scope
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.links.code import silent
from tres_scrapy.middlewares.reward import RewardMiddleware
from tres_scrapy.page.copies import SKETCH, fingerprint
from tres_scrapy.page.kind import is_soft_404
from tres_scrapy.page.text import Link, Page
from tres_scrapy.topic.judge_process import WorkerError
from tres_scrapy.topic.pack import Judged

SEED = "http://a.test/"
LINKS = tuple(Link(f"http://{name}.test/", f"about {name}") for name in "bcd")
ACTIONS = np.arange(9, dtype=np.float32).reshape(3, 3) / 10


class Judge:
    """Finds every page relevant, with the same links, or raises `error` if it is set."""

    def __init__(self, error=None):
        self.error = error

    def action_features(self, urls, anchors):
        return np.full((len(urls), 3), 0.5, dtype=np.float32)

    def submit(self, source):
        future = Future()
        if self.error is not None:
            future.set_exception(self.error)
        else:
            page = Page(source.url, "Title", source.body.decode(), LINKS)
            judged = Judged(page, 0.9, ACTIONS, cues=silent(len(LINKS)))
            found = {"mark": fingerprint(page), "is_missing": is_soft_404(page)}
            future.set_result(judged._replace(**found))
        return future


def crawl_over():
    store = SampleStore(DomainLedger())
    return Crawl(store, make_policy("tres", store, PolicyInputs()))


class SeenUrls:
    """The filter of Scrapy's defaults, by URL."""

    is_default = True

    def __init__(self):
        self.seen = set()

    def drops(self, request):
        return request.url in self.seen or self.seen.add(request.url) is not None

    def log(self, request):
        pass

    def remember(self, urls):
        self.seen.update(urls)


def leased_page(
    follow_every_link,
    *,
    judge=None,
    url=SEED,
    status=200,
    response_class=HtmlResponse,
    errback=None,
    **options,
):
    """A middleware and the response to a leased seed."""
    crawl = crawl_over()
    learner = CrawlSession(
        crawl,
        judge or Judge(),
        follows_all=follow_every_link,
        dupefilter=SeenUrls(),
        **options,
    )
    assert learner.steps.add_seed(url, Request(url, errback=errback))
    row = crawl.next().row
    request = Request(url, meta={LEASE: row})
    response = response_class(url, status=status, body=b"text", request=request)
    return RewardMiddleware(learner), crawl, response


def process(middleware, response, callback):
    """Pass a response and the output of its callback through the middleware."""

    async def collect():
        return [thing async for thing in middleware.process_spider_output(response, callback())]

    return asyncio.run(collect())


async def no_output():
    return
    yield


def rows_of(crawl):
    rows = np.arange(len(crawl.store))
    return [
        (crawl.store.url(row), crawl.store.anchors[row], crawl.store.trail(row))
        for row in rows.tolist()
    ], crawl.store.features(rows).tolist()


def test_both_doors_yield_the_same_rows():
    middleware, followed, response = leased_page(follow_every_link=True)
    process(middleware, response, no_output)

    async def requests():
        for link in LINKS:
            yield Request(link.url)

    middleware, asked, response = leased_page(follow_every_link=False)
    output = process(middleware, response, requests)
    assert rows_of(asked) == rows_of(followed)
    assert [request.meta[SAMPLE] for request in output] == [1, 2, 3]
    replays = [
        crawl.policy._learner._replay.batch(1).candidates.tolist() for crawl in (asked, followed)
    ]
    assert replays == [[1, 2, 3]] * 2


def test_unlinked_request_gets_features():
    middleware, crawl, response = leased_page(follow_every_link=False)

    async def requests():
        yield Request("http://z.test/")
        yield Request(LINKS[1].url)
        yield Request("http://z.test/", method="POST")
        yield {"an": "item"}

    output = process(middleware, response, requests)
    assert output[-1] == {"an": "item"}
    assert [request.meta.get(SAMPLE) for request in output[:-1]] == [1, 2, None]
    np.testing.assert_allclose(
        crawl.store.features(np.array([1, 2]))[:, 3:6], [[0.5] * 3, ACTIONS[1]]
    )


def test_body_is_decoded_by_the_judge():
    class Sealed(HtmlResponse):
        @property
        def text(self):
            raise AssertionError("decoded in the event loop")

    middleware, _, response = leased_page(follow_every_link=True, response_class=Sealed)
    process(middleware, response, no_output)
    assert response.meta[VISIT].page.text == "text"


@pytest.mark.parametrize(("header", "language"), [("de-AT", "de-AT"), ("de, en", ""), (None, "")])
def test_judge_reads_the_declared_language(header, language):
    judge, sources = Judge(), []
    judge.submit = lambda source: sources.append(source) or Judge().submit(source)
    middleware, _, response = leased_page(follow_every_link=True, judge=judge)
    response.headers["Content-Language"] = header
    process(middleware, response, no_output)
    assert [source.language for source in sources] == [language]


def test_callback_sees_the_visit():
    middleware, _, response = leased_page(follow_every_link=True)

    async def callback():
        visit = response.meta[VISIT]
        yield visit.probability, visit.path, visit.depth

    assert process(middleware, response, callback) == [(0.9, [SEED], 0)]


def test_page_is_booked_despite_callback_error():
    middleware, crawl, response = leased_page(follow_every_link=False)

    async def callback():
        yield Request(LINKS[0].url)
        raise RuntimeError("a bug of the spider's")

    with pytest.raises(RuntimeError):
        process(middleware, response, callback)
    assert (crawl.pages, crawl.leased, len(crawl.store)) == (1, 0, 2)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"status": 404}, "http_404"),
        ({"response_class": Response}, "not_html"),
        ({"judge": Judge(ValueError("too deep"))}, "judge_error"),
    ],
)
def test_failed_fetch_is_booked(options, kind):
    middleware, crawl, response = leased_page(follow_every_link=True, **options)
    assert process(middleware, response, no_output) == []
    assert crawl.failures == {kind: 1}
    assert (crawl.pages, crawl.leased) == (0, 0)


@pytest.mark.parametrize("status", [200, 404])
def test_unsaved_page_gives_no_items(status):
    """A resumed crawl fetches the page again: its items would be there twice."""
    job = Mock(**{f"{name}.return_value": {} for name in ("requests", "rests")})
    job.book.return_value = job.failed = False
    middleware, _, response = leased_page(follow_every_link=False, status=status, job=job)

    async def outputs():
        yield {"name": "soup"}
        yield Request("http://y.test/")

    assert process(middleware, response, outputs) == []


def test_dead_judge_stops_the_crawl(caplog):
    error = WorkerError("the process that judges pages does not start: too many open files")
    stopped = []
    middleware, crawl, response = leased_page(
        follow_every_link=True, judge=Judge(error), stop=stopped.append
    )
    assert process(middleware, response, no_output) == []
    assert process(middleware, response, no_output) == []
    assert stopped == ["no_judge"]
    assert [record.message for record in caplog.records] == [f"The crawl stops: {error}"]
    assert (crawl.failures, crawl.leased) == ({}, 1)


def test_batch_is_booked_over_loop_rounds():
    middleware, crawl, response = leased_page(follow_every_link=True)
    responses = [response]
    for number in range(2):
        url = f"http://{number}.test/"
        (row,) = crawl.add_seeds(Outlinks([url], [""], np.zeros((1, 3), dtype=np.float32))).tolist()
        assert crawl.next().row == row
        responses.append(HtmlResponse(url, body=b"text", request=Request(url, meta={LEASE: row})))
    counts = []

    async def watch():
        while crawl.pages < len(responses):
            counts.append(crawl.pages)
            await asyncio.sleep(0)

    async def book(response):
        async for _ in middleware.process_spider_output(response, no_output()):
            pass

    async def crawl_all():
        await asyncio.gather(watch(), *map(book, responses))

    asyncio.run(crawl_all())
    assert set(counts) == {0, 1, 2}


def test_data_of_use_is_no_failure():
    """The URLs of a sitemap are links, not seeds: they are not fetched first and get no reward."""
    middleware, crawl, response = leased_page(follow_every_link=False, response_class=Response)

    async def requests():
        yield "an item"
        yield Request("http://y.test/")
        yield Request("http://z.test/")

    output = process(middleware, response, requests)
    assert output[0] == "an item"
    assert [request.meta[SAMPLE] for request in output[1:]] == [1, 2]
    assert [crawl.store.is_seed(row) for row in range(3)] == [True, False, False]
    assert (crawl.pages, crawl.leased, crawl.failures) == (0, 0, {})
    assert crawl.counts["data_answers"] == 1
    assert crawl.policy.figures()["leaves"] == 1
    assert crawl.next().leaf is not None  # chosen by the tree


def test_next_call_of_an_api_is_scrapys():
    """An answer of the same kind was data; when it is a page again, the next are samples."""
    middleware, _, response = leased_page(follow_every_link=False, response_class=TextResponse)

    async def requests():
        yield Request("http://a.test/?page=2")
        yield Request("http://a.test/?page=3", callback=print)
        yield Request("http://b.test/?page=2")

    call, *samples = process(middleware, response, requests)
    assert [request.meta.get(SAMPLE) for request in (call, *samples)] == [None, 1, None]
    call.meta[OWN] = True
    page = HtmlResponse(call.url, body=b"text", request=call)
    process(middleware, page, no_output)
    assert middleware._session.requests.url_of_sample(Request("http://a.test/?page=4"))


def test_links_of_an_error_page_are_samples():
    """Without an errback it was the callback that took them from the page."""
    middleware, crawl, response = leased_page(follow_every_link=False, status=404)

    async def requests():
        yield Request("http://y.test/")

    (request,) = process(middleware, response, requests)
    assert (request.meta, crawl.failures) == ({SAMPLE: 1}, {})


def test_error_that_is_handled_is_no_failure():
    """What an errback asks for instead becomes a seed when it is scheduled."""
    middleware, crawl, response = leased_page(
        follow_every_link=False, status=503, errback=lambda _: None
    )

    async def requests():
        yield Request("http://y.test/")

    (request,) = process(middleware, response, requests)
    assert request.meta == {}
    assert (len(crawl.store), crawl.leased, crawl.failures) == (1, 0, {})


def test_errback_is_the_spiders_own_again():
    middleware, _, response = leased_page(follow_every_link=False)
    response.request.errback = print
    middleware.process_spider_input(response)
    assert response.request.errback is None


def test_links_survive_callback_error():
    middleware, crawl, response = leased_page(follow_every_link=False, response_class=Response)

    async def requests():
        yield Request("http://y.test/")
        middleware.process_spider_exception(response, RuntimeError("a bug of the spider's"))
        raise RuntimeError("a bug of the spider's")

    with pytest.raises(RuntimeError):
        process(middleware, response, requests)
    assert crawl.counts["data_answers"] == 1
    assert not crawl.store.is_seed(1)


def test_repeated_link_is_no_seed():
    middleware, _, response = leased_page(follow_every_link=False)

    async def requests():
        yield Request("http://c.test/1")

    process(middleware, response, requests)
    assert not seed(middleware, "http://c.test/1")
    assert seed(middleware, "http://c.test/1", meta={"is_start_request": True})
    assert seed(middleware, "http://c.test/2")


def seed(middleware, url, **options):
    """Add a request that comes from no page to the frontier."""
    return middleware._session.steps.add_seed(url, Request(url, **options))


def test_chained_error_books_page_once():
    """Scrapy calls process_spider_exception first and then ends the callback's output."""
    middleware, crawl, response = leased_page(follow_every_link=False)

    async def callback():
        yield Request(LINKS[0].url)
        middleware.process_spider_exception(response, RuntimeError("a bug of the spider's"))

    (request,) = process(middleware, response, callback)
    assert request.meta[SAMPLE] == 1
    assert (crawl.pages, crawl.failures, crawl.leased) == (1, {}, 0)


def test_repeated_url_is_dropped():
    middleware, crawl, response = leased_page(follow_every_link=False)

    async def callback():
        yield Request(LINKS[0].url)
        yield Request(LINKS[0].url)
        yield Request(LINKS[0].url, dont_filter=True)

    output = process(middleware, response, callback)
    assert [request.meta.get(SAMPLE) for request in output] == [1, None, None]
    assert len(crawl.store) == 2


def test_link_that_a_rule_excludes_is_dropped():
    middleware, crawl, response = leased_page(follow_every_link=False)
    crawl.store.admission.scope = Scope(ScopeOptions(deny=("c.test",)))

    async def callback():
        yield Request("http://c.test/")

    (request,) = process(middleware, response, callback)
    assert request.meta[SAMPLE] == NO_PARENT


def test_first_request_for_a_url_is_sent():
    """Scrapy drops the later ones; the frontier knows that two pages link to it."""
    middleware, _, response = leased_page(follow_every_link=False)
    own = middleware._session.requests
    assert seed(middleware, "http://c.test/", cb_kwargs={"first": True})

    async def callback():
        yield Request("http://c.test/")

    (request,) = process(middleware, response, callback)
    assert SAMPLE not in request.meta
    assert [own.of(row).cb_kwargs for row in (1, 2)] == [{"first": True}] * 2


def test_page_meta_may_be_passed_on():
    middleware, crawl, response = leased_page(follow_every_link=False)

    async def callback():
        yield Request(LINKS[0].url, meta=response.meta)

    (request,) = process(middleware, response, callback)
    assert set(request.meta) == {SAMPLE}
    assert crawl.store.url(request.meta[SAMPLE]) == LINKS[0].url


def test_middleware_error_ends_the_lease():
    middleware, crawl, response = leased_page(follow_every_link=True)
    middleware.process_spider_exception(response, KeyError("x"))
    middleware.process_spider_exception(response, KeyError("x"))
    assert crawl.failures == {"KeyError": 1}


def test_foreign_response_is_left_alone():
    middleware, crawl, _ = leased_page(follow_every_link=False)
    response = HtmlResponse("http://z.test/", request=Request("http://z.test/"))

    async def callback():
        yield "item"

    assert process(middleware, response, callback) == ["item"]
    assert crawl.pages == 0


def test_items_of_an_interrupted_crawl_are_not_sent_when_the_crawl_ends():
    ends = []
    session = SimpleNamespace(job=SimpleNamespace(unexported=["first", "second"]), follows_all=True)
    middleware = RewardMiddleware(session, ends=lambda: bool(ends))

    async def start():
        found = []
        async for output in middleware.process_start(no_output()):
            found.append(output)
            ends.append(output)  # such as a disk that fails
        return found

    assert asyncio.run(start()) == ["first"]


def test_changed_topic_is_asked_about_earlier_pages():
    judge, sources = Judge(), []
    mark, told = bytes(SKETCH), []
    middleware, crawl, response = leased_page(follow_every_link=True, judge=judge)
    crawl.policy.relearn = told.append
    crawl.add_seeds(Outlinks([f"http://{name}.test/" for name in "xy"], ["", ""], ACTIONS[:2]))
    crawl.revision.recognise(0, mark)
    crawl.revision.note("model", described=False)

    def submit(source):
        sources.append(source)
        future = Judge(ValueError("no")).submit(source) if len(sources) == 1 else Future()
        if not future.done():
            page = Judge().submit(source).result()
            again = {mark.hex(): 0.9} if source.again else {}
            future.set_result(page._replace(model="model", again=again))
        return future

    judge.submit = submit
    process(middleware, response, no_output)  # that page cannot be judged
    for number in (1, 2):
        row = crawl.next().row
        request = Request(crawl.store.url(row), meta={LEASE: row})
        process(middleware, HtmlResponse(request.url, body=b"text", request=request), no_output)
        assert told == [{0: (1.0, 1.0)}], number
    assert [source.again for source in sources] == [True, True, False]
