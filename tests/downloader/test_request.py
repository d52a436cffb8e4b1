import json

import pytest
from scrapy import FormRequest, Request, Spider

from tres_scrapy.downloader.request import dump_request, load_request, load_sample


class Unlike(Request):
    """A kind of request of a project's own."""


class Theirs(Spider):
    name = "theirs"

    def parse_page(self, response):
        pass

    def failed(self, failure):
        pass


SPIDER = Theirs()


def test_request_comes_back_as_it_was():
    request = Request(
        "http://a.test/?q=1",
        callback=SPIDER.parse_page,
        errback=SPIDER.failed,
        method="GET",
        headers={"Accept": ["text/html", "text/plain"], "X": b"\xff"},
        body=b"\x00\xfe",
        cookies={"a": "b"},
        meta={"depth": 2, "names": ["x", None]},
        priority=3,
        dont_filter=True,
        flags=["one"],
        cb_kwargs={"page": 4},
    )
    back = load_request(dump_request(request, SPIDER), SPIDER)
    assert back.to_dict(spider=SPIDER) == request.to_dict(spider=SPIDER)


@pytest.mark.parametrize(
    "request_",
    [
        Request("http://a.test/", callback=lambda response: None),
        Request("http://a.test/", meta={"object": object()}),
        Request("http://a.test/", meta={"pair": (1, 2)}),
        Request("http://a.test/", meta={1: "number"}),
        Unlike("http://a.test/"),
    ],
)
def test_changed_request_is_refused(request_):
    with pytest.raises((TypeError, ValueError)):
        dump_request(request_, SPIDER)


def test_form_comes_back_as_plain_request():
    form = FormRequest("http://a.test/", formdata={"a": "b"})
    back = load_request(dump_request(form, SPIDER), SPIDER)
    assert (type(back), back.method, back.body) == (Request, "POST", b"a=b")
    assert back.headers == form.headers


def test_credentials_and_proxies_are_not_kept():
    request = Request("http://me:secret@a.test/", meta={"proxy": "http://127.0.0.1:22"})
    text = dump_request(request, SPIDER)
    assert "secret" not in text
    assert load_request(text, SPIDER).meta == {}


def test_text_imports_no_class():
    fields = json.loads(dump_request(Request("http://a.test/"), SPIDER))
    text = json.dumps(fields | {"_class": "subprocess.Popen"})
    assert type(load_request(text, SPIDER)) is Request


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "[]",
        "{}",
        "[" * 100_000,
        *('"url": 2', '"url": "http://[/"', '"url": "file:///etc/passwd"', '"url": "//a.test/"'),
        *('"meta": true', '"body": null', '"headers": [255]', '"headers": [["a", [null]]]'),
        *('"callback": "name"', '"errback": "missing"', '"priority": []', '"flags": 3'),
        *('"encoding": ""', '"method": []', '"cb_kwargs": 7'),
        r'"method": "' + r"\udcff" * 200 + '"',
    ],
)
def test_foreign_text_is_refused(text):
    if text.startswith('"'):
        good = dump_request(Request("http://a.test/"), SPIDER)
        text = json.dumps(json.loads(good) | json.loads("{" + text + "}"))
    with pytest.raises(ValueError, match="request") as error:
        load_sample(text, SPIDER)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300
