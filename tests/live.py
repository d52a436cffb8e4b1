"""A crawl with its live page, and a browser, for tests that read the page and steer the crawl."""

import http.client
import json
import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from urllib.parse import parse_qs, urlsplit

import pytest
from conftest import running, served

HOSTS = 3000
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
)
PATIENCE = 300_000  # milliseconds
SOUP = (
    "<title>{0} <img src=x onerror=alert(1)></title><p>A recipe for soup with {0}: chop "
    "the onions, simmer the vegetables in butter, add cream, bake the bread, serve it hot.</p>"
)


class Live:
    """A crawl in a separate process, with its log and its page by HTTP."""

    def __init__(self, process, web):
        self.process, self.web, self.log = process, web, []
        self._reader = Thread(target=self._read)
        self._reader.start()
        self.until(lambda: "Live page: " in self.text, "there is no live page")
        self.url = re.search(r"Live page: (\S+)", self.text)[1]
        self.token = parse_qs(urlsplit(self.url).query)["token"][0]
        self.port = urlsplit(self.url).port
        self.page = f"http://127.0.0.1:{self.port}/"

    def _read(self):
        self.log.extend(iter(self.process.stderr.readline, ""))

    @property
    def text(self):
        return "".join(self.log)

    def until(self, condition, complaint, seconds=300):
        """Wait for a result, or until the crawl has ended."""
        end = monotonic() + seconds
        while not condition():
            is_late = monotonic() > end or self.process.poll() is not None
            assert not is_late, f"{complaint}:\n{self.text[-3000:]}"
            sleep(0.05)

    def ask(self, path, method="GET", body=None, **headers):
        """Return status, headers and body; `token` and `host` default to those of the crawl."""
        given = {"X-Tres-Token": self.token, "Host": f"127.0.0.1:{self.port}"} | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        if body is not None:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        found = response.status, response.headers, response.read()
        connection.close()
        return found

    def state(self, after=-1):
        status, _, body = self.ask(f"/state?step={after}")
        assert status == 200, body
        return json.loads(body)

    def steer(self, do, value=""):
        """Return the status and the message."""
        asked = json.dumps({"do": do, "value": value}).encode()
        status, _, body = self.ask("/control", "POST", asked)
        return status, next(iter(json.loads(body).values()))

    def until_asked_for(self, url, since):
        """Wait until a URL is among the first requests after `since`: 16 are under way together.

        Requests are counted when the threads of the web reach them.
        """
        self.until(
            lambda: any(asked.startswith(url) for _, asked in self.web.requests[since:][:40]),
            f"{url} is not among the first",
        )

    def ended(self):
        """Wait for the end and return the exit status."""
        status = self.process.wait(300)
        self._reader.join()
        return status


@contextmanager
def browser_page():
    """Yield a page of Chromium with its errors and the URLs it asked for; skip without one."""
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed: no page can be looked at")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE)
        page.errors, page.asked = [], []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda said: page.errors.extend(_refusals_in(said.text)))
        page.on("request", lambda request: page.asked.append(request.url))
        yield page
        browser.close()


def _refusals_in(text):
    return [text] if "Content Security Policy" in text else []


@contextmanager
def live_crawl(directory, *arguments):
    """Crawl a web where each host has two pages and leads to the next host, MAX being 1."""
    with served() as web:
        for i in range(HOSTS):
            links = "".join(f'<a href="http://h{i + 1}.test/{p}">soup {p}</a>' for p in ("", "x"))
            for page in ("", "x"):
                web.add(f"http://h{i}.test/{page}", SOUP.format(f"leek{page} {i}") + links)
        options = {"topic": "food", "seed": "http://h0.test/", "dashboard": 1, "max_per_domain": 1}
        options |= {"output": directory / "pages.jsonl"}
        words = [word for pair in options.items() for word in ("-a", "{}={}".format(*pair))]
        words += ["-s", "DOWNLOAD_DELAY=0", "-s", "RETRY_TIMES=0", *arguments]
        environment = os.environ | {"http_proxy": f"http://127.0.0.1:{web.port}"}
        pipe = subprocess.PIPE
        with running("crawl", "tres", *words, env=environment, stderr=pipe) as process:
            yield Live(process, web)
