"""A small web for ordinary spiders: every host name below `.test` has the same pages.

The last label before `.test` names the spider, so the requests of each spider can be told apart.
Two of these webs run on two addresses of this machine and one port, so both have the same URLs.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from urllib.parse import parse_qs, urlencode, urlsplit

from PIL import Image

ADDRESSES = ("127.0.0.2", "127.0.0.3")
API_ITEMS, PER_PAGE = 180, 10
CURSORS = 25
CATALOG_PAGES, PER_CATALOG = 5, 4
HTML, JSON = "text/html; charset=utf-8", "application/json"
WORDS = (
    "a soup recipe: chop the onions, simmer them in butter, add cream and pepper, serve with bread",
    "an election: the parliament voted, ministers debated the budget and the court heard the case",
)


@dataclass
class Asked:
    """One request as the web received it."""

    method: str
    host: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> list[str]:
        return urlsplit(self.target).path.split("/")[1:]

    @property
    def query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: values[-1] for name, values in found.items()}

    @property
    def form(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(self.body.decode()).items()}

    @property
    def cookies(self) -> dict[str, str]:
        pairs = [pair.split("=", 1) for pair in self.headers.get("Cookie", "").split("; ") if pair]
        return dict(pairs)

    @property
    def spider(self) -> str:
        return self.host.removesuffix(".test").rpartition(".")[2]


@dataclass
class Sent:
    """One answer."""

    body: bytes = b""
    kind: str = HTML
    status: int = 200
    headers: list[tuple[str, str]] = field(default_factory=list)
    missing: int = 0  # bytes that Content-Length promises and the body lacks


Route = Callable[["SmallWeb", Asked], Sent]
ROUTES: dict[str, Route] = {}


def route(function: Route) -> Route:
    """Serve the paths whose first part has the name of the function."""
    ROUTES[function.__name__.removeprefix("serve_").replace("__", ".")] = function
    return function


class SmallWeb:
    """The state of one web: the requests that it received, and how often each URL was asked."""

    def __init__(self, address: str, port: int = 0) -> None:
        self.log: dict[str, list[Asked]] = defaultdict(list)
        self.times: Counter[tuple[str, str]] = Counter()
        self.lock = threading.Lock()
        self.server = _Server((address, port), _handler_of(self))
        self.address, self.port = self.server.server_address[:2]
        self._thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self._thread.start()

    def answer(self, asked: Asked) -> Sent:
        with self.lock:
            self.log[asked.spider].append(asked)
            self.times[asked.host, asked.target] += 1
        function = ROUTES.get(asked.path[0] or "home")
        return page("Not found", status=404) if function is None else function(self, asked)

    def asked(self, asked: Asked) -> int:
        """Return how often the URL of a request was asked, this time included."""
        return self.times[asked.host, asked.target]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


@contextmanager
def small_webs() -> Iterator[tuple[SmallWeb, SmallWeb]]:
    """Serve two webs on two addresses and one port."""
    first = SmallWeb(ADDRESSES[0])
    second = SmallWeb(ADDRESSES[1], first.port)
    try:
        yield first, second
    finally:
        first.close()
        second.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a spider may close a connection
            super().handle_error(request, client_address)


def _handler_of(web: SmallWeb) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # headers and body in one packet
        disable_nagle_algorithm = True

        def do(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            split = urlsplit(self.path)  # a proxy gets the whole URL
            target = split.path + (f"?{split.query}" if split.query else "")
            host = (self.headers.get("Host") or "").rpartition(":")[0] or self.headers.get("Host")
            headers = dict(self.headers.items())
            asked = Asked(self.command, host, target, headers, self.rfile.read(length))
            self.send(web.answer(asked))

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = do  # noqa: N815

        def send(self, sent: Sent) -> None:
            self.send_response(sent.status)
            if sent.kind:
                self.send_header("Content-Type", sent.kind)
            for name, value in sent.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(sent.body) + sent.missing))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(sent.body)
            self.close_connection = self.close_connection or bool(sent.missing)

        def date_time_string(self, timestamp: float | None = None) -> str:
            return "Mon, 06 Jan 2025 00:00:00 GMT"  # answers of equal length

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def page(title: str, body: str = "", status: int = 200, head: str = "", **headers: str) -> Sent:
    """Return an HTML page."""
    text = f"<html><head><title>{title}</title>{head}</head><body><h1>{title}</h1>{body}</body>"
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return Sent(text.encode(), HTML, status, named)


def data(value: object, status: int = 200) -> Sent:
    """Return an answer of JSON."""
    return Sent(json.dumps(value).encode(), JSON, status)


def link(target: str, text: str = "", attributes: str = "") -> str:
    return f'<p><a href="{target}" {attributes}>{text or target}</a></p>\n'


def own_product(asked: Asked) -> str:
    """Return the path of a product to which no other page links."""
    return "/product/" + "-".join(part for part in re.split(r"\W", asked.target) if part)


@route
def serve_home(web: SmallWeb, asked: Asked) -> Sent:
    return page("Home", link("/catalog/1", "catalog") + link("/about", "about us"))


@route
def serve_about(web: SmallWeb, asked: Asked) -> Sent:
    return page("About", link("/", "home"))


@route
def serve_catalog(web: SmallWeb, asked: Asked) -> Sent:
    number = int(asked.path[1])
    products = "".join(
        f'<div class="product">{link(f"/product/{number}-{i}", f"product {number}-{i}")}</div>'
        for i in range(1, PER_CATALOG + 1)
    )
    following = link(f"/catalog/{number + 1}", "next page", 'class="next"')
    return page(f"Catalog {number}", products + (following if number < CATALOG_PAGES else ""))


@route
def serve_product(web: SmallWeb, asked: Asked) -> Sent:
    name = asked.path[1]
    price = sum(map(ord, name))
    text = WORDS[price % 2]
    return page(
        f"Product {name}",
        f'<p class="price">{price}</p><p>{text}</p><img src="/image/{name}.png">'
        f"{link(f'/file/{name}.txt', 'manual')}",
    )


@route
def serve_tree(web: SmallWeb, asked: Asked) -> Sent:
    """Serve a binary tree: /tree/ links to /tree/a and /tree/b, and so on, to depth 4."""
    node = asked.path[1]
    children = [f"/tree/{node}{letter}" for letter in "ab"] if len(node) < 4 else []
    return page(f"Node {node}", "".join(map(link, children)))


@route
def serve_links(web: SmallWeb, asked: Asked) -> Sent:
    """Serve a page of the links that its query lists."""
    targets = parse_qs(urlsplit(asked.target).query)["to"]
    return page("Links", "".join(map(link, targets)))


@route
def serve_kind(web: SmallWeb, asked: Asked) -> Sent:
    """Serve an answer that is no HTML."""
    bodies = {
        "text": (b"plain words", "text/plain"),
        "json": (b'{"answer": 42}', JSON),
        "pdf": (b"%PDF-1.4 not really", "application/pdf"),
        "bytes": (bytes(range(256)), "application/octet-stream"),
        "xml": (b"<root><answer>42</answer></root>", "application/xml"),
        "none": (b"no type", ""),
        "empty": (b"", HTML),
    }
    return Sent(*bodies[asked.path[1]])


@route
def serve_meta(web: SmallWeb, asked: Asked) -> Sent:
    """Serve a page with a robots meta element and links."""
    head = f'<meta name="robots" content="{asked.path[1]}">'
    return page(
        "Robots", link("/product/1-1") + link("/product/1-2", "", 'rel="nofollow"'), 200, head
    )


@route
def serve_api(web: SmallWeb, asked: Asked) -> Sent:
    """Serve 180 items by page number or 25 pages by cursor, from the query, a body or a form."""
    told = {**asked.query, **(json.loads(asked.body) if asked.body[:1] == b"{" else asked.form)}
    if asked.path[1] == "items":
        number = int(told.get("page", 1))
        first = (number - 1) * PER_PAGE
        items = [{"id": i} for i in range(first, min(first + PER_PAGE, API_ITEMS))]
        more = first + PER_PAGE < API_ITEMS
        return data({"items": items, "total": API_ITEMS, "next": number + 1 if more else None})
    cursor = int(told.get("cursor", 0))
    following = cursor + 1 if cursor + 1 < CURSORS else None
    return data({"items": [{"cursor": cursor}], "next": following})


@route
def serve_status(web: SmallWeb, asked: Asked) -> Sent:
    code = int(asked.path[1])
    return page(f"Status {code}", link(own_product(asked)), code)


@route
def serve_flaky(web: SmallWeb, asked: Asked) -> Sent:
    """Fail as often as the path says, by the status that the path says, then serve a page."""
    failures, code = int(asked.path[1]), int(asked.path[2])
    if web.asked(asked) <= failures:
        return page("Failed", "", code)
    return page("Recovered", link(own_product(asked)))


@route
def serve_redirect(web: SmallWeb, asked: Asked) -> Sent:
    code, target = asked.path[1], asked.query["to"]
    return page("Moved", "", int(code), Location=target)


@route
def serve_loop(web: SmallWeb, asked: Asked) -> Sent:
    return page("Loop", "", 302, Location=f"/loop/{int(asked.path[1]) + 1}")


@route
def serve_refresh(web: SmallWeb, asked: Asked) -> Sent:
    target = asked.query["to"]
    return page("Refresh", "", 200, f'<meta http-equiv="refresh" content="0; url={target}">')


@route
def serve_slow(web: SmallWeb, asked: Asked) -> Sent:
    sleep(float(asked.path[1]))
    return page(f"Slow {asked.target}")


@route
def serve_echo(web: SmallWeb, asked: Asked) -> Sent:
    """Tell the request."""
    shown = ("Accept", "Authorization", "Content-Type", "Cookie", "Referer", "User-Agent", "X-Own")
    return data(
        {
            "method": asked.method,
            "target": asked.target,
            "body": asked.body.decode("latin-1"),
            "headers": {name: asked.headers[name] for name in shown if name in asked.headers},
        }
    )


@route
def serve_search(web: SmallWeb, asked: Asked) -> Sent:
    """Serve results and, on each page, the form that asks for the next one."""
    told = asked.form if asked.method == "POST" else asked.query
    number = int(told.get("page", 0))
    results = "".join(link(f"/product/{number}-{i}") for i in range(2)) if number else ""
    form = (
        f'<form action="/search" method="post"><input name="q" value="{told.get("q", "")}">'
        f'<input type="hidden" name="page" value="{number % 4 + 1}">'
        '<input type="submit" name="go" value="Go"></form>'
    )
    return page(f"Search {number}", results + form)


@route
def serve_login(web: SmallWeb, asked: Asked) -> Sent:
    if asked.method == "POST" and asked.form.get("token") == "t0k":
        user = asked.form["user"]
        return page("Welcome", "", 302, Location="/account/1", Set_Cookie=f"user={user}; Path=/")
    form = (
        '<form action="/login" method="post"><input name="user"><input name="password">'
        '<input type="hidden" name="token" value="t0k"></form>'
    )
    return page("Log in", form)


@route
def serve_account(web: SmallWeb, asked: Asked) -> Sent:
    user = asked.cookies.get("user")
    if user is None:
        return page("Who are you?", "", 403)
    number = int(asked.path[1])
    more = link(f"/account/{number + 1}", "more") if number < 3 else ""
    return page(f"Account of {user}, page {number}", more)


@route
def serve_cookie(web: SmallWeb, asked: Asked) -> Sent:
    """Set a cookie, or tell the cookies."""
    if asked.path[1] == "show":
        return page("Cookies", f'<p id="cookies">{sorted(asked.cookies.items())}</p>')
    name, value = asked.path[1:3]
    return page("Set", link(f"/cookie/show?of={value}"), Set_Cookie=f"{name}={value}; Path=/")


@route
def serve_secret(web: SmallWeb, asked: Asked) -> Sent:
    wanted = "Basic " + base64.b64encode(b"ada:love").decode()
    if asked.headers.get("Authorization") == wanted:
        return page("Secret", link("/secret/deeper") if len(asked.path) == 1 else "")
    return page("Unauthorized", "", 401, WWW_Authenticate='Basic realm="secret"')


@route
def serve_render(web: SmallWeb, asked: Asked) -> Sent:
    """Serve what a browser would make of the URL in the body."""
    target = urlsplit(json.loads(asked.body)["url"])
    inner = Asked("GET", asked.host, target.path, {}, b"")
    answer = ROUTES[inner.path[0]](web, inner)
    return Sent(answer.body, answer.kind, answer.status)


@route
def serve_job(web: SmallWeb, asked: Asked) -> Sent:
    """Serve a job that is ready at the third request."""
    times = web.asked(asked)
    return data({"ready": times >= 3, "times": times})


@route
def serve_robots__txt(web: SmallWeb, asked: Asked) -> Sent:
    root = f"http://{asked.host}:{web.port}"
    rules = {
        "rules": "User-agent: *\nDisallow: /product/2\n",
        "delay": "User-agent: *\nCrawl-delay: 60\n",
        "maps": f"Sitemap: {root}/sitemap-index.xml\n",
    }.get(asked.host.split(".")[0])
    if asked.host.startswith("broken."):
        return page("Broken", "", 503)
    if rules is None:
        return page("Not found", "", 404)
    return Sent(rules.encode(), "text/plain")


def _xml(root: str, name: str, urls: list[str]) -> Sent:
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    places = "".join(f"<{name}><loc>{url}</loc></{name}>" for url in urls)
    return Sent(f'<{root} xmlns="{space}">{places}</{root}>'.encode(), "application/xml")


@route
def serve_sitemap_index(web: SmallWeb, asked: Asked) -> Sent:
    root = f"http://{asked.host}:{web.port}"
    return _xml("sitemapindex", "sitemap", [f"{root}/sitemap/{i}" for i in (1, 2)])


ROUTES["sitemap-index.xml"] = serve_sitemap_index


@route
def serve_sitemap(web: SmallWeb, asked: Asked) -> Sent:
    root, number = f"http://{asked.host}:{web.port}", asked.path[1]
    return _xml("urlset", "url", [f"{root}/product/{number}-{i}" for i in range(1, 4)])


@route
def serve_feed__xml(web: SmallWeb, asked: Asked) -> Sent:
    rows = "".join(f"<row><id>{i}</id><at>/product/1-{i}</at></row>" for i in range(1, 5))
    return Sent(f"<rows>{rows}</rows>".encode(), "application/xml")


@route
def serve_feed__csv(web: SmallWeb, asked: Asked) -> Sent:
    rows = "".join(f"{i},/product/1-{i}\r\n" for i in range(1, 5))
    return Sent(f"id,at\r\n{rows}".encode(), "text/csv")


@route
def serve_image(web: SmallWeb, asked: Asked) -> Sent:
    side = 20 + sum(map(ord, asked.path[1])) % 50
    file = io.BytesIO()
    Image.new("RGB", (side, side), (200, 30, 30)).save(file, "PNG")
    return Sent(file.getvalue(), "image/png")


@route
def serve_file(web: SmallWeb, asked: Asked) -> Sent:
    return Sent(f"manual {asked.path[1]}".encode(), "text/plain")


@route
def serve_gzip(web: SmallWeb, asked: Asked) -> Sent:
    plain = page(f"Packed {asked.path[1]}", "<p>word</p>" * 500)
    return Sent(gzip.compress(plain.body, mtime=0), HTML, 200, [("Content-Encoding", "gzip")])


@route
def serve_encoding(web: SmallWeb, asked: Asked) -> Sent:
    """Serve a page in an encoding, which the header or the page itself names."""
    encoding, where = asked.path[1:3]
    head = f'<meta charset="{encoding}">' if where == "page" else ""
    text = f"<html><head>{head}<title>Café à la crème</title></head><body>é</body>"
    kind = f"text/html; charset={encoding}" if where == "header" else "text/html"
    return Sent(text.encode(encoding), kind)


@route
def serve_large(web: SmallWeb, asked: Asked) -> Sent:
    return page("Large", "x" * (1024 * int(asked.path[1])))


@route
def serve_short(web: SmallWeb, asked: Asked) -> Sent:
    """Serve a page that ends before its Content-Length."""
    sent = page("Short", link("/product/1-1"))
    sent.missing = 100
    return sent


@route
def serve_etag(web: SmallWeb, asked: Asked) -> Sent:
    headers = {"ETag": '"v1"', "Cache-Control": "max-age=0"}
    if asked.headers.get("If-None-Match") == '"v1"':
        return Sent(b"", HTML, 304, list(headers.items()))
    return page("Tagged", "", **headers)


def links_to(*targets: str) -> str:
    """Return the path of a page of links."""
    return "/links?" + urlencode([("to", target) for target in targets])
