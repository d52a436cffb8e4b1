"""Requests: the keys of TRES in Request.meta, and a spider's own requests as JSON."""

from __future__ import annotations

import json
from typing import Any, Final

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.http.headers import Headers
from scrapy.utils.request import request_from_dict

from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import CREDENTIALS, LONGEST_REASON, reason

# Keys of Request.meta: SAMPLE holds the row of a request waiting in the frontier, LEASE the row of
# a request that was sent, VISIT the Visit of its response.
SAMPLE, LEASE, VISIT = "tres_sample", "tres_lease", "tres_visit"
RENDERED = "rendered"  # in Response.flags: the page's scripts have run in a browser
RECEIVED = "tres_received"  # key of Request.meta: the response before rendering, for the archive
# Key of Request.meta: the bytes received of a robots.txt.
ROBOTS_TXT = "tres_robots"
# Key of Request.meta: what robots.txt says about the use of the page
RIGHTS = "tres_rights"
FOR_SAMPLE = "tres_for_sample"  # of a robots.txt that a sample waits for
ASIDE = "tres_aside"  # key of Request.meta: not a sample of the frontier, for example a query
OWN = "tres_own"  # key of Request.meta: a spider's own request that is not a sample

START = "is_start_request"  # Scrapy's key of Request.meta

PROXIES = ("proxy", "_auth_proxy", "_scheme_proxy")
_BYTES = "latin-1"  # maps every byte to a character
_FIELDS = frozenset(Request.attributes)
COMMANDS: Final = "scrapy.commands."  # `fetch`, `parse`, `check` and `bench` bring their own start


def follows_links(spider: Spider | type[Spider] | None) -> bool:
    """Return whether every link of a page enters the frontier, as for our own spider.

    Otherwise the requests are those of a project's own spider.
    """
    return bool(getattr(spider, "follow_every_link", False))


def header_pairs(headers: Headers) -> list[tuple[str, str]]:
    """Return names and values, decoded as latin-1."""
    return [
        (name.decode(_BYTES), value.decode(_BYTES))
        for name, values in headers.items()
        for value in values
    ]


def dump_request(request: Request, spider: Spider) -> str:
    """Return a request as JSON; raise ValueError or TypeError if JSON cannot store all of it.

    Scrapy's own kinds of requests, such as a FormRequest, are sent as their method, headers and
    body say: they are stored as plain ones.
    """
    fields = request.to_dict(spider=spider)
    if not type(request).__module__.startswith("scrapy.http.request"):
        raise ValueError(f"a {type(request).__name__} is not a request of Scrapy's")
    for name in fields.keys() - _FIELDS:
        del fields[name]
    fields["url"] = CREDENTIALS.sub(r"\1", request.url)
    fields["body"] = request.body.decode(_BYTES)
    fields["headers"] = [
        [name.decode(_BYTES), [value.decode(_BYTES) for value in values]]
        for name, values in request.headers.items()
    ]
    fields["flags"] = list(request.flags)
    text = json.dumps(fields)
    if json.loads(text) != fields:
        raise ValueError("its meta or arguments hold values that JSON cannot store")
    return text


def load_request(text: str, spider: Spider) -> Request:
    """Return the request that `dump_request` wrote, without running code that the text names.

    Raise ValueError if the text is not such a request.
    """
    try:
        return _request(json.loads(text), spider)
    except Exception as error:  # an untrusted text may raise any error
        raise ValueError(f"a request cannot be read: {reason(error)}") from None


def load_sample(text: str, spider: Spider) -> Request:
    """Return the request of a sample of the frontier; raise ValueError as `load_request` does."""
    request = load_request(text, spider)
    if request.method != "GET" or canonicalise(request.url) is None:
        # cut last: the form of a character that cannot be printed is up to ten characters long
        asked = repr(f"{request.method} {request.url}")[:LONGEST_REASON]
        raise ValueError(f"a request cannot be a sample of the frontier: {asked}")
    return request


def _request(fields: dict[str, Any], spider: Spider) -> Request:
    fields.pop("_class", None)  # it would name a class to be imported
    # a proxy from the file could give access to private addresses, a start to local files
    is_web = fields["url"].startswith(("http://", "https://"))
    for name in PROXIES if is_web else (*PROXIES, START):
        fields["meta"].pop(name, None)
    fields["body"] = fields["body"].encode(_BYTES)
    fields["headers"] = {
        name.encode(_BYTES): [value.encode(_BYTES) for value in values]
        for name, values in fields["headers"]
    }
    return request_from_dict(fields, spider=spider)


def crawls(crawler: Crawler) -> bool:
    """Return whether a crawler runs a spider to its end.

    `scrapy shell` makes a crawler that never crawls; other commands give their spider another
    start, or bring their own spider.
    """
    spider = crawler.spidercls
    owners = (spider.__module__, getattr(spider.start, "__module__", ""))
    return crawler.crawling and not any(owner.startswith(COMMANDS) for owner in owners)
