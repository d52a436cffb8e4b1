"""A crawl in shards is seen and steered as one: live page, metrics, record, report."""

import http.client
import json
import os
import re
import subprocess
import sys
from threading import Thread
from time import monotonic, sleep
from urllib.parse import parse_qs, urlsplit

import pytest

from tres_scrapy.report.record import Record

pytest.importorskip("ray", reason="needs the extra cluster")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
PROGRAM = "from tres_scrapy.cli.main import main; main()"


class Crawl:
    """A process of `tres`, its log and its live page."""

    def __init__(self, folder, *words):
        self.folder = folder
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *words],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.log = []
        self._reader = Thread(
            target=lambda: self.log.extend(iter(self.process.stdout.readline, ""))
        )
        self._reader.start()

    @property
    def text(self):
        return "".join(self.log)

    def until(self, condition, complaint):
        end = monotonic() + 200
        while not (found := condition()):
            is_late = monotonic() > end or self.process.poll() is not None
            assert not is_late, f"{complaint}:\n{self.text[-3000:]}"
            sleep(0.2)
        return found

    def found(self, pattern):
        return self.until(lambda: re.search(pattern, self.text), f"no {pattern}")[1]

    def ask(self, path, body=None):
        place = urlsplit(self.found(r"Live page: (http\S+)"))
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        headers = {"X-Tres-Token": parse_qs(place.query)["token"][0]}
        connection.request("GET" if body is None else "POST", path, body, headers)
        response = connection.getresponse()
        status, text = response.status, response.read()
        connection.close()
        return status, json.loads(text) if text else None

    def state(self):
        return self.ask("/state?step=-1")[1]

    def steer(self, do, value=""):
        return self.ask("/control", json.dumps({"do": do, "value": value}))

    def metrics(self):
        place = urlsplit(self.found(r"Metrics are served at (http\S+)"))
        connection = http.client.HTTPConnection(place.netloc, timeout=60)
        connection.request("GET", place.path)
        text = connection.getresponse().read().decode()
        connection.close()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")

    def ended(self):
        status = self.process.wait(300)
        self._reader.join()
        self.process.stdout.close()
        return status


def words(*more, pages=100_000, shards=2):
    given = ["cluster", "crawl", "food", "--web", "synthetic", "--shards", str(shards)]
    return [*given, "--pages", str(pages), "--max-per-domain", "5", "--job", "job", *more]


@pytest.fixture
def crawl(tmp_path):
    crawl = Crawl(tmp_path, *words("--dashboard", "1", "--metrics-port", "0"))
    yield crawl
    if crawl.process.poll() is None:
        crawl.process.terminate()
        crawl.ended()


def logs(crawl):
    return "".join(path.read_text() for path in crawl.folder.glob("job/logs/shard-*.log"))


def paused(crawl):
    """Pause, and return the pages when open requests are done."""
    assert crawl.steer("pause")[0] == 200
    crawl.until(lambda: logs(crawl).count("Command pause") == 2, "a shard is not paused")
    crawl.until(lambda: crawl.state()["under_way"] == 0, "requests stay open")
    sleep(2)  # until the last reports have come
    return crawl.state()["pages"]


def test_whole_crawl_is_seen_and_steered(crawl):
    crawl.until(lambda: crawl.state()["pages"] > 60, "no pages")
    state = crawl.state()
    assert [row["shard"] for row in state["shards"]] == [0, 1]
    assert sum(row["pages"] for row in state["shards"]) == state["pages"]
    assert {row["state"] for row in state["shards"]} == {"running"}
    pages = crawl.until(lambda: crawl.state()["recent"], "no recent page")
    assert crawl.ask(f"/page?step={pages[0]['step']}")[1]["features"]
    assert crawl.until(lambda: crawl.ask("/figures?step=-1")[1]["charts"], "no chart")
    before = paused(crawl)
    assert crawl.state()["status"] == "paused"
    sleep(2)
    assert crawl.state()["pages"] == before
    said = crawl.metrics()
    shards = [float(said[f'tres_shard_pages_total{{shard="{n}"}}']) for n in (0, 1)]
    assert float(said["tres_pages_total"]) == sum(shards) == before
    seed = "http://not-seen-before.test/"  # its domain cannot be full
    assert crawl.steer("seed", seed) == (200, {"said": f"Next: {seed}."})
    assert crawl.steer("max", "2") == (200, {"said": "MAX is 2 from now on."})
    crawl.until(lambda: logs(crawl).count("Command change_max: MAX is 2") == 2, "MAX stays")
    assert logs(crawl).count(f"Command add_seed: Next: {seed}") == 1  # only its owner
    assert crawl.state()["max"] == "2"
    crawl.steer("resume")
    crawl.until(lambda: crawl.state()["pages"] > before, "it is not resumed")
    crawl.steer("stop")
    assert crawl.ended() == 0
    with Record(crawl.folder / "job" / "tres.run") as record:
        assert record.meta()["reason"] == "shutdown"
        assert record.curve()[-1].pages > 60
        assert record.web_count()["pages"] > 60  # it may know a page better than the judge
    assert "job/tres.html" in crawl.text


def test_ended_crawl_is_one_crawl(tmp_path):
    crawl = Crawl(tmp_path, *words(pages=120))
    assert crawl.ended() == 0, crawl.text
    job = tmp_path / "job"
    assert "It ran in 2 shards" in (job / "tres.html").read_text()
    assert not list(job.glob("shard-*/*.html"))
    with Record(job / "tres.run") as record:
        counts = record.count()
        assert sum(counts.get(kind, 0) for kind in ("relevant", "irrelevant", "copy")) == 120
        trails = [record.trail(page) for page in record.last(1000)[::-1]]
        last = record.last(1)[0]
    assert all(trail[0].parent is None for trail in trails)
    assert any(len({hop.row % 2 for hop in trail}) == 2 for trail in trails)
    listed = Crawl(tmp_path)
    listed.ended()
    assert re.findall(r"ended +(\S+): 120 of 120 pages", listed.text) == ["job/tres.run"]
    explained = Crawl(tmp_path, "explain", "job", last.url)
    assert explained.ended() == 0
    assert f"Shard: {last.row % 2} of 2" in explained.text
    reported = Crawl(tmp_path, "report", "job", "-o", "again.html")
    assert reported.ended() == 0
    assert "120 pages" in (tmp_path / "again.html").read_text()


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        (["--dashboard", "1", "--no-record"], "it needs --record"),
        (["--metrics-port", "70000"], "metrics-port"),
        (["--warc-file", "a.warc.gz"], "each shard writes its own archive"),
    ],
)
def test_bad_option_is_refused(tmp_path, more, complaint):
    crawl = Crawl(tmp_path, *words(*more))
    assert crawl.ended() == 1
    assert complaint in crawl.text
    assert "Traceback" not in crawl.text


def test_folder_of_another_kind_of_crawl_is_refused(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "tres.sqlite").touch()
    crawl = Crawl(tmp_path, *words())
    assert crawl.ended() == 1
    assert "is the JOBDIR of a crawl without shards: give another folder" in crawl.text
