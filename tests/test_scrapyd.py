"""The project as an egg in a real scrapyd: deployed, scheduled, watched, cancelled, resumed."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from time import monotonic, sleep
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from conftest import PROJECT, stats_of
from live import browser_page

pytestmark = pytest.mark.long

pytest.importorskip("scrapyd", reason="scrapyd is not installed: pip install '.[scrapyd]'")
pytest.importorskip("scrapyd_client", reason="scrapyd-client is not installed")

PATIENCE = 600  # seconds for each step: the machine may be busy
SERVER = """
[scrapyd]
http_port = {port}
poll_interval = 0.2
items_dir = items
jobs_dir = jobs
max_proc = 2
"""
CLIENT = """
[settings]
default = tres_scrapy.settings

[deploy]
url = http://127.0.0.1:{port}/
project = tres
"""
# The package may be installed here, but the jobs must find it only in the egg.
ELSEWHERE = """
import sys
from pathlib import Path
sys.meta_path[:] = [each for each in sys.meta_path if "editable" not in str(each)]
sys.path[:] = [each for each in sys.path if not Path(each, "tres_scrapy").exists()]
"""
KEYWORDS = "recipe\ncooking\nbaking\nsoup\nsauce\nflour\nbutter\noven\ndessert\nsalad\n"
LONG, WORDS = "long", "words"  # the jobs
PAGES = 60  # of the second


class Server:
    """A scrapyd on a free port of this machine."""

    def __init__(self, directory):
        with closing(socket.socket()) as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.directory = directory
        (directory / "scrapyd.conf").write_text(SERVER.format(port=self.port))
        (directory / "sitecustomize.py").write_text(ELSEWHERE)
        (directory / "words.txt").write_text(KEYWORDS)
        self.temporary = directory / "temporary"
        self.temporary.mkdir()
        places = {"PYTHONPATH": str(directory), "TMPDIR": str(self.temporary)}
        self.environment = os.environ | places
        with (directory / "scrapyd.log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "scrapyd"],
                cwd=directory,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def get(self, path):
        with urlopen(f"http://127.0.0.1:{self.port}/{path}") as answer:
            return answer.read().decode()

    def post(self, path, *data):
        body = urlencode(data).encode()
        with urlopen(f"http://127.0.0.1:{self.port}/{path}", body) as answer:
            facts = json.load(answer)
        assert facts["status"] == "ok", facts
        return facts

    def schedule(self, job, pages, **more):
        arguments = {"topic": "food", "pages": pages, "random_seed": 1} | more
        settings = [("setting", "TRES_WEB=synthetic"), ("setting", "LOG_LEVEL=INFO")]
        what = {"project": "tres", "spider": "tres", "jobid": job} | arguments
        assert self.post("schedule.json", *what.items(), *settings)["jobid"] == job

    def jobs(self, state):
        return {job["id"] for job in json.loads(self.get("listjobs.json?project=tres"))[state]}

    def items(self, job):
        try:
            return [json.loads(line) for line in self.get(f"items/tres/tres/{job}.jl").splitlines()]
        except (URLError, ValueError):  # not started, or a line is being written
            return []

    def log(self, job):
        try:
            return self.get(f"logs/tres/tres/{job}.log")
        except URLError:  # not started
            return ""

    def folder(self, job):
        """Return the JOBDIR."""
        return self.directory / "jobs" / "tres" / "tres" / job

    def wait(self, condition):
        end = monotonic() + PATIENCE
        while not condition():
            assert monotonic() < end, (self.directory / "scrapyd.log").read_text()
            sleep(0.1)

    def listens(self):
        assert self.process.poll() is None, (self.directory / "scrapyd.log").read_text()
        try:
            return self.get("daemonstatus.json")
        except URLError:
            return None


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("server"))
    with server.process:
        try:
            server.wait(server.listens)
            yield server
        finally:
            server.process.terminate()


@pytest.fixture(scope="module")
def deployed(server, tmp_path_factory):
    """Deploy a copy of the project, so that building an egg leaves no files in the checkout."""
    project = tmp_path_factory.mktemp("project")
    for name in ("tres_scrapy", "models"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / name, project / name, ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, project)
    (project / "scrapy.cfg").write_text(CLIENT.format(port=server.port))
    settings = project / "tres_scrapy" / "settings.py"
    settings.write_text(settings.read_text().replace('BOT_NAME = "tres"', 'BOT_NAME = "egg"'))
    done = subprocess.run(
        [sys.executable, "-m", "scrapyd_client.deploy"],
        cwd=project,
        env=server.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "ok"
    return server


@pytest.fixture(scope="module")
def crawling(deployed):
    """Two jobs at once; the first has a live page, and the second starts from keywords."""
    deployed.schedule(LONG, 100_000, dashboard=1, metrics_file="long.prom")
    deployed.schedule(WORDS, PAGES, keywords="words.txt")
    deployed.wait(lambda: {LONG, WORDS} <= deployed.jobs("running"))
    deployed.wait(lambda: len(deployed.items(LONG)) >= 3)
    deployed.wait(lambda: "Live page: " in deployed.log(LONG))
    return deployed


@pytest.fixture(scope="module")
def cancelled(crawling):
    """The log and the items of the first job after it was cancelled; the second has ended."""
    crawling.wait(lambda: WORDS in crawling.jobs("finished"))
    answer = crawling.post("cancel.json", ("project", "tres"), ("job", LONG))
    assert answer["prevstate"] == "running"
    crawling.wait(lambda: LONG in crawling.jobs("finished"))
    return crawling.log(LONG), crawling.items(LONG)


@pytest.fixture(scope="module")
def resumed(crawling, cancelled):
    """The server after the first job was scheduled again, and has ended."""
    pages = stats_of(cancelled[0])["tres/pages"]
    crawling.schedule(LONG, pages=pages + 10, metrics_file="long.prom")
    crawling.wait(lambda: "'finish_reason': 'page_limit'" in crawling.log(LONG))
    crawling.wait(lambda: not crawling.jobs("running"))
    return crawling


@pytest.fixture
def page():
    with browser_page() as page:
        yield page


def live_url(server):
    return re.search(r"Live page: (\S+)", server.log(LONG))[1]


def test_live_page_is_served_with_its_files(crawling):
    port, token = re.search(r":(\d+)/\?token=(\S+)$", live_url(crawling)).groups()
    found = {}
    for name in ("/", "/page.js", "/page.css", "/plotly.min.js", "/state?step=-1"):
        connection = HTTPConnection("127.0.0.1", int(port), timeout=PATIENCE)
        connection.request("GET", name, headers={"X-Tres-Token": token})
        with closing(connection), connection.getresponse() as answer:
            found[name] = answer.status, answer.headers.get_content_type(), len(answer.read())
    assert {status for status, _, _ in found.values()} == {200}
    kinds = {kind for _, kind, _ in found.values()}
    assert kinds == {"text/html", "text/javascript", "text/css", "application/json"}
    assert min(size for _, _, size in found.values()) > 100


def test_live_page_shows_the_crawl(crawling, page):
    assert page.goto(live_url(crawling), wait_until="commit").status == 200
    page.locator("#status", has_text="running").wait_for()
    page.locator("#recent .domain", has_text=".test").first.wait_for()
    page.locator('[data-figure="harvest"] svg .trace').first.wait_for(state="attached")
    assert (
        page.evaluate("getComputedStyle(document.querySelector('#status')).borderRadius") != "0px"
    )
    assert not page.errors


def test_cancelled_job_is_whole(cancelled):
    log, items = cancelled
    assert "'finish_reason': 'shutdown'" in log
    assert "(bot: egg)" in log
    first, *_ = items
    assert {"url", "title", "probability", "q_value"} <= first.keys()
    assert f"'item_scraped_count': {len(items)}" in log


def test_same_job_is_resumed(resumed, cancelled):
    log, kept = cancelled
    assert f"Resuming after {stats_of(log)['tres/pages']} pages" in resumed.log(LONG)
    urls = [item["url"] for item in resumed.items(LONG)]
    assert urls[: len(kept)] == [item["url"] for item in kept]
    assert len(set(urls)) == len(urls) > len(kept)


def test_job_learns_from_keywords(resumed):
    log = resumed.log(WORDS)
    folder = resumed.folder(WORDS) / "topic"
    assert f"Topic: a new one, food, from 10 keywords; what is learned lies in {folder}" in log
    assert "Topic: learned from" in log
    assert stats_of(log)["tres/pages"] == PAGES
    late = stats_of(log)["item_scraped_count"] - stats_of(log)["tres/relevant_pages"]
    assert len(resumed.items(WORDS)) == stats_of(log)["item_scraped_count"] > 5
    assert late >= 0  # pages that the last model finds relevant


@pytest.mark.parametrize("job", [LONG, WORDS])
def test_log_has_no_error(resumed, job):
    log = resumed.log(job)
    assert "Spider closed" in log
    # a site may have given many of the pages, or all relevant ones so far
    assert not re.findall(
        r".*(?:ERROR|WARNING: (?!\S+ gave |All \d+ relevant )|CRITICAL|Traceback).*", log
    )
    said = (resumed.directory / "scrapyd.log").read_text()
    assert "Traceback" not in said
    assert "Process died" not in said


@pytest.mark.parametrize("job", [LONG, WORDS])
def test_report_is_readable(resumed, page, job):
    file = resumed.folder(job) / "tres.html"
    assert f"The report of the crawl is {file}" in resumed.log(job)
    page.goto(file.as_uri())
    page.locator("svg.main-svg .trace").first.wait_for(state="attached")
    assert page.locator("svg.main-svg").count() >= 10
    pages = stats_of(resumed.log(WORDS))["tres/pages"] if job == WORDS else ""
    assert re.search(rf"of {pages}.* pages, .* relevant to food", page.locator("h1").inner_text())
    assert not page.errors


@pytest.mark.parametrize("job", [LONG, WORDS])
def test_fetch_is_explained(resumed, tres, job):
    *_, item = resumed.items(job)
    done = tres("explain", resumed.folder(job), item["url"])
    assert done.returncode == 0, done.stderr
    assert "Why: " in done.stdout
    assert item["title"] in done.stdout
    assert ("Topic now: P(relevant)" in done.stdout) == (job == WORDS)


def test_metrics_are_written(resumed):
    written = (resumed.directory / "long.prom").read_text()
    pages = float(re.search(r"^tres_pages_total (\S+)", written, re.MULTILINE)[1])
    assert pages == stats_of(resumed.log(LONG))["tres/pages"]


def test_nothing_unpacked_is_left(resumed):
    assert not list(resumed.temporary.glob("tres-*"))
