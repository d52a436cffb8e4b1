from types import SimpleNamespace

import pytest
from twisted.web.http_headers import Headers

from tres_scrapy.live.token import TOKEN_HEADER, PageAccess


def request(args=None, cookie=None, **headers):
    """The parts of a request that are checked; a list is a repeated header."""
    raw = {
        name.replace("_", "-"): value if isinstance(value, list) else [value]
        for name, value in headers.items()
    }
    cookies = []
    made = SimpleNamespace(requestHeaders=Headers(raw), args=args or {}, cookies=cookies)
    made.getHost = lambda: SimpleNamespace(port=8000)
    made.getCookie = lambda name: dict([cookie] if cookie else []).get(name)
    made.addCookie = lambda name, value, **attributes: cookies.append((name, value, attributes))
    return made


def token_of(gate):
    return gate.address(8000).rpartition("=")[2]


def test_tokens_are_long_and_unique():
    tokens = {token_of(PageAccess()) for _ in range(20)}
    assert len(tokens) == 20
    assert {len(token) for token in tokens} == {43}  # 256 bits


def test_only_the_header_steers():
    gate = PageAccess()
    token = token_of(gate)
    name = TOKEN_HEADER.decode()
    assert gate.may_steer(request(**{name: token}))
    assert gate.may_open(request(**{name: token}))
    for wrong in ("", token[:-1], token + "x", token.swapcase(), [token, token], ["x", token]):
        assert not gate.may_steer(request(**{name: wrong}))
        assert not gate.may_open(request(**{name: wrong}))
    assert not gate.may_steer(request())


def test_cookie_opens_without_steering():
    gate, first = PageAccess(), request()
    gate.welcome(first)
    ((name, value, attributes),) = first.cookies
    assert name == b"tres_8000"
    assert attributes == {"path": "/", "httpOnly": True, "sameSite": "strict"}
    visit = request(cookie=(name, value.encode()))
    assert gate.may_open(visit)
    assert not gate.may_steer(visit)
    for other in ((name, b""), (name, token_of(gate).encode()), (b"tres_8001", value.encode())):
        assert not gate.may_open(request(cookie=other))
    assert not PageAccess().may_open(visit), "another crawl's"


def test_address_introduces_with_the_token_once():
    gate = PageAccess()
    token = token_of(gate).encode()
    assert gate.introduces(request({b"token": [token]}))
    for args in ({}, {b"token": [b""]}, {b"token": [token, token]}, {b"token": [b"\xff" + token]}):
        assert not gate.introduces(request(args))


@pytest.mark.parametrize(
    ("host", "is_known"),
    [
        ("127.0.0.1:8000", True),
        ("localhost", True),
        ("LocalHost:9", True),
        ("", False),
        (["localhost", "localhost"], False),
        ("localhost.evil.test", False),
        ("evil.test:8000", False),
        ("127.0.0.1@evil.test", False),
        ("evil.test#127.0.0.1", False),
        ("0.0.0.0:8000", False),
        ("[::1]:8000", False),
        ("[", False),
        ("localhost:x", True),
    ],
)
def test_host_must_be_this_machine(host, is_known):
    assert PageAccess().knows_host(request(Host=host)) is is_known
