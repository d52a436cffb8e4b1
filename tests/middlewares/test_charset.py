import pytest
from scrapy import Request
from scrapy.http import HtmlResponse, Response

from tres_scrapy.middlewares.message import CharsetMiddleware

URL = "http://a.test/"


@pytest.mark.parametrize("named", ["punycode", "idna", "base64", "undefined", "rot13", "no-such"])
def test_codecs_that_browsers_lack_are_ignored(named):
    headers = {"Content-Type": f"text/html; charset={named}"}
    page = HtmlResponse(URL, 200, headers, "<p>caf\xe9".encode(), flags=["x"])
    read = CharsetMiddleware().process_response(Request(URL), page)
    assert read.text == "<p>caf\xe9"
    assert (type(read), read.flags, read.headers) == (HtmlResponse, ["x"], page.headers)


def test_bytes_stay_as_they_are():
    picture = Response(URL, body=b"\x89PNG")
    assert CharsetMiddleware().process_response(Request(URL), picture) is picture
