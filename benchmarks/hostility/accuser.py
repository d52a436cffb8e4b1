"""A page whose links fail on honest sites, served by a proxy, and a crawl of both."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from socketserver import StreamRequestHandler, ThreadingTCPServer
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

PROJECT: Final = Path(__file__).parents[2]
SITES: Final = 6  # honest ones; each is found on the last page of the one before
PAGES: Final = 15  # of a site
LINKS: Final = 45  # of the hostile page to each site
HOPS: Final = 9  # redirects of the hostile site before one to an honest site
LONGEST: Final = 900.0  # seconds of a crawl
FOODS: Final = re.findall(
    r"\w+",
    """
    onions garlic butter cream cheddar pepper tomatoes chicken basil thyme carrots celery potatoes
    mushrooms flour eggs sugar yeast olive oil lemon parsley spinach leeks beef bacon rice noodles
    ginger cinnamon vanilla honey walnuts almonds raisins apples pears cabbage
    """,
)
STEPS: Final = re.findall(
    r"\w+", "chop fry simmer roast bake whisk knead stir peel grate boil season"
)

KINDS: Final[dict[str, Callable[[str, str], str]]] = {  # the URL of a link, by site and words
    "nothing": lambda site, words: f"http://{site}/",
    "ports": lambda site, words: f"http://{site}:{1000 + len(words)}/{words}",
    "names": lambda site, words: f"http://x{words}.{site}/",
    "robots": lambda site, words: f"http://{site}/private/{words}",
    "images": lambda site, words: f"http://{site}/img/{words}.jpg",
    "forbidden": lambda site, words: f"http://{site}/.ht-{words}",
    "broken": lambda site, words: f"http://{site}/broken/{words}",
    "walls": lambda site, words: f"http://{site}/search?q=verify+you+are+human+{words}",
    "copies": lambda site, words: f"http://{site}/?from={words}",
    "redirects": lambda site, words: f"http://evil.test/0/{site}/{words}",
    "mirror": lambda site, words: f"http://evil.test/of/{site}/{len(words) % PAGES}",
}


class Answer(NamedTuple):
    """A status, a media type or the target of a redirect, and a body."""

    status: int
    kind: str
    body: str


def answer_of(url: str, kind: str) -> Answer | None:
    """Return the answer to a URL, None to close the connection."""
    place = urlsplit(url)
    host, path = place.hostname or "", place.path
    if place.port is not None or host.startswith("x"):
        return None
    if path == "/robots.txt":
        return Answer(200, "text/plain", "User-agent: *\nDisallow: /private/\n")
    if host == "hub.test":
        return page("hub", "http://evil.test/", "http://s0.test/")
    if host == "evil.test":
        return _evil(path, kind)
    return _honest(host, path, parse_qs(place.query), kind)


def _evil(path: str, kind: str) -> Answer:
    first, _, rest = path.strip("/").partition("/")
    site, _, words = rest.partition("/")
    if first == "of":
        return page(f"{site}/{words}")
    if first:
        hop = int(first) + 1
        onward = f"http://evil.test/{hop}/{rest}" if hop <= HOPS else f"http://{site}/"
        return Answer(302, onward, "")
    names = [f"s{i}.test" for i in range(SITES)]
    links = [KINDS[kind](name, "-" * i + FOODS[i % 30]) for i in range(LINKS) for name in names]
    return page("evil", *links)


def _honest(host: str, path: str, query: dict[str, list[str]], kind: str) -> Answer:
    if path.startswith("/img/"):
        return Answer(200, "image/jpeg", "picture")
    if path.startswith("/.ht"):
        return Answer(403, "text/html", "Forbidden")
    if path.startswith("/broken/"):
        return Answer(500, "text/html", "Error")
    if path == "/search":
        return Answer(200, "text/html", f"<title>Search</title><p>Nothing: {query['q'][0]}")
    if path == "/" and kind == "redirects":
        return Answer(302, f"http://{host}/0", "")
    number = int(path.strip("/") or 0)
    links = [f"/{i}" for i in (2 * number + 1, 2 * number + 2) if i < PAGES]
    if number == PAGES - 1 and host != f"s{SITES - 1}.test":
        links.append(f"http://s{int(host[1]) + 1}.test/")
    return page(f"{host}/{number}", *links)


def page(name: str, *links: str) -> Answer:
    """Return a recipe with links."""
    draw = Random(name)
    steps = (f"{draw.choice(STEPS)} the {' and '.join(draw.sample(FOODS, 3))}" for _ in range(100))
    anchors = "".join(f'<p><a href="{url}">soup recipe</a></p>' for url in links)
    text = f"A recipe for {name} soup: {', then '.join(steps)}"
    return Answer(200, "text/html", f"<html lang=en><title>{name} soup</title><p>{text}{anchors}")


def crawl(kind: str, *settings: str) -> int:
    """Crawl until the links end; return how many pages of the honest sites are items."""

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            url = self.rfile.readline().split()[1].decode()
            while self.rfile.readline().strip():
                pass
            if (answer := answer_of(url, kind)) is not None:
                name = "Location" if answer.status == 302 else "Content-Type"
                head = f"HTTP/1.1 {answer.status} Said\r\n{name}: {answer.kind}\r\n"
                head += f"Content-Length: {len(answer.body)}\r\nConnection: close\r\n\r\n"
                self.wfile.write((head + answer.body).encode())

    class Server(ThreadingTCPServer):
        daemon_threads = True
        request_queue_size = 100

    with Server(("127.0.0.1", 0), Handler) as web, TemporaryDirectory() as folder:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        output = Path(folder, "pages.jsonl")
        given = ["topic=food", "seed=http://hub.test/", f"output={output}", "rest=0.05", *settings]
        command = [sys.executable, "-m", "scrapy", "crawl", "tres", "-s", "DOWNLOAD_DELAY=0"]
        command += ["-s", "LOG_LEVEL=CRITICAL", *(part for each in given for part in ("-a", each))]
        proxy = {"http_proxy": f"http://127.0.0.1:{web.server_address[1]}"}
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - our own command
                command, cwd=PROJECT, env=os.environ | proxy, check=False, timeout=LONGEST
            )
        web.shutdown()
        items = map(json.loads, output.read_text(encoding="utf-8").splitlines())
        hosts = [urlsplit(item["final_url"]).hostname or "" for item in items]
        return sum(host[1:2].isdecimal() for host in hosts)
