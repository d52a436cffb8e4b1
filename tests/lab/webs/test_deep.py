import asyncio
import io
import json
import re
from urllib.parse import quote_plus

import pytest
from webs.deep import CAP, RECORDS, SITES, DeepWeb

from tres_scrapy.lab.webs.proxy import Proxy
from tres_scrapy.lab.webs.web import Count, FormWeb

pytestmark = pytest.mark.slow

LIBRARY, REGISTRY = "http://library.test", "http://registry.test"


@pytest.fixture(scope="module")
def web():
    return DeepWeb("food")


@pytest.fixture(scope="module")
def often(web):
    """Return the most frequent word in the titles of the library."""
    found = web.holding("library.test")._found
    return max(found, key=lambda word: (len(found[word]), word))


def text_of(answer):
    return answer.body.decode()


def records_on(answer):
    return [int(number) for number in re.findall(r'"/record/(\d+)-', text_of(answer))]


@pytest.mark.long
def test_title_words_find_records(web, often):
    titles = [title.lower().split() for title in web.holding("library.test").titles]
    assert len(titles) == RECORDS
    holders = {i for i, words in enumerate(titles) if often in words}
    found = web.holding("library.test").search(often.upper())
    assert len(holders) > len(found) == CAP
    assert set(found) < holders
    two = f"{titles[found[0]][0]} {titles[found[0]][1]}"
    assert set(web.holding("library.test").search(two)) == {
        i for i, words in enumerate(titles) if set(two.split()) <= set(words)
    }
    assert web.holding("library.test").search("") == []


def test_text_words_find_nothing(web):
    holding = web.holding("library.test")
    titled = {word for title in holding.titles for word in title.lower().split()}
    alone = next(word for word in holding.body(0) if word not in titled)
    assert holding.search(alone) == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "path", "turn"),
    [("library.test", "/find", "page=2"), ("archive.test", "/s", "start=10"),
     ("museum.test", "/look", "p=2")],
)  # fmt: skip
def test_result_pages_lead_through_all(web, often, host, path, turn):
    url, seen = f"http://{host}{path}?q={often}", []
    while url:
        answer = web.answer(url)
        assert answer.status == 200
        assert answer.kind == "search"
        assert answer.facts["returned"] == records_on(answer)
        seen += records_on(answer)
        following = re.search(r'"step" href="([^"]+)">Next<', text_of(answer))
        assert len(seen) > 10 or turn in (following[1] if following else turn)
        url = f"http://{host}{following[1].replace('&amp;', '&')}" if following else None
    assert seen == web.holding(host).search(often)


def test_empty_answer_has_navigation(web):
    answer = web.answer(f"{LIBRARY}/find?q=qxzjvk")
    assert (answer.status, records_on(answer)) == (200, [])
    assert "did not match" in text_of(answer)
    guides = {re.findall(r"/guide/(\d+)", text_of(web.answer(f"{LIBRARY}/find?q={w}")))[0]
              for w in ("a", "b", "c", "d")}  # fmt: skip
    assert len(guides) > 1, "what stands beside the results is another at each query"


def test_records_are_linked_from_results_only(web):
    for path in ("/", "/about", "/browse", "/guide/1", "/find?q="):
        assert records_on(web.answer(LIBRARY + path)) == []
    record = web.answer(f"{LIBRARY}/record/17")
    assert record.facts == {"record": 17}
    assert records_on(record) == []
    title = web.holding("library.test").titles[17]
    assert f"<h1>{title}</h1>" in text_of(record)
    assert web.labels([f"{LIBRARY}/record/17"]) == [record.relevant]


def test_each_site_declares_its_search(web):
    homes = {host: text_of(web.answer(f"http://{host}/")) for host in SITES}
    assert 'action="/find" method="get" role="search"' in homes["library.test"]
    assert "search_term_string" in homes["archive.test"]
    assert 'role="search"' not in homes["archive.test"] + homes["museum.test"]
    assert "searchTerms" in text_of(web.answer("http://museum.test/opensearch.xml"))
    assert 'method="post" role="search"' in homes["registry.test"]
    assert "Disallow: /search" in text_of(web.answer("http://vault.test/robots.txt"))
    assert "Disallow: /find" not in text_of(web.answer(f"{LIBRARY}/robots.txt"))


@pytest.mark.long
def test_one_site_answers_posted_forms_only(web):
    word = web.holding("registry.test").titles[0].split()[0]
    assert isinstance(web, FormWeb)
    assert web.answer(f"{REGISTRY}/query?q={word}").status == 404
    answer = web.submit(f"{REGISTRY}/query", f"q={quote_plus(word)}&page=1")
    assert records_on(answer) == web.holding("registry.test").search(word)[:10]
    assert web.submit(f"{LIBRARY}/find", "q=a").status == 405


@pytest.mark.long
def test_same_seed_same_records(web):
    again, other = DeepWeb("food"), DeepWeb("food", seed=1)
    url = f"{LIBRARY}/record/5"
    assert again.answer(url) == web.answer(url) != other.answer(url)
    assert web.answer("http://elsewhere.test/").status == 502


def test_log_names_query_and_records(web, often):
    """This includes a form posted through the proxy."""

    async def talk():
        proxy = Proxy(web, Count(log))
        port = await proxy.start(0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        body = f"q={often}"
        writer.write(
            f"POST {REGISTRY}/query HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}"
            f"GET {LIBRARY}/record/3 HTTP/1.1\r\nConnection: close\r\n\r\n".encode()
        )
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        await proxy.stop()
        return answer

    log = io.StringIO()
    answer = asyncio.run(talk())
    assert answer.count(b"200 OK") == 2
    first, second = map(json.loads, log.getvalue().splitlines())
    assert (first["query"], first["returned"]) == (
        often, web.holding("registry.test").search(often)[:10],
    )  # fmt: skip
    assert second["record"] == 3


@pytest.mark.long
def test_record_on_any_of_several_topics_counts(web):
    both = DeepWeb("food+sports").holding("library.test")
    one = web.holding("library.test")
    assert (both.topic == one.topic).all()
    names = [both.topics[topic] for topic in both.topic]
    assert both.relevant.tolist() == [name in {"food", "sports"} for name in names]
    assert both.relevant.sum() > one.relevant.sum()
