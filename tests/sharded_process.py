"""A crawl in shards as a user runs it: real processes, Ray, a synthetic web."""

import http.client
import json
import os
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from urllib.parse import parse_qs, urlsplit

PROGRAM = "from tres_scrapy.cli.main import main; main()"
PATIENCE = 300  # seconds for each step: the machine may be busy


def words(*more, pages=100_000, shards=2):
    given = ["cluster", "crawl", "food", "--web", "synthetic", "--shards", str(shards)]
    return [*given, "--pages", str(pages), "--max-per-domain", "5", "--job", "job", *more]


class ShardedCrawl:
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
        """Wait for a result and return it; fail if the crawl ends before."""
        end = monotonic() + PATIENCE
        while not (found := condition()):
            is_late = monotonic() > end or self.process.poll() is not None
            assert not is_late, f"{complaint}:\n{self.text[-3000:]}"
            sleep(0.1)
        return found

    def found(self, pattern):
        return self.until(lambda: re.search(pattern, self.text), f"no {pattern}")[1]

    def ask(self, path, body=None):
        place = urlsplit(self.found(r"Live page: (http\S+)"))
        connection = http.client.HTTPConnection(place.netloc, timeout=PATIENCE)
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
        connection = http.client.HTTPConnection(place.netloc, timeout=PATIENCE)
        connection.request("GET", place.path)
        text = connection.getresponse().read().decode()
        connection.close()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")

    def ended(self):
        """Wait for the end and return the exit status."""
        status = self.process.wait(PATIENCE)
        self._reader.join()
        self.process.stdout.close()
        return status


def ended(crawl):
    """Return the log of a crawl that must succeed."""
    assert crawl.ended() == 0, crawl.text
    return crawl.text


def served(log):
    """Return how often a web has served each page, by the log of the web."""
    if not log.exists():
        return Counter()
    lines = (json.loads(line) for line in log.read_text().splitlines(keepends=True) if "\n" in line)
    return Counter(line["url"] for line in lines if line["kind"] in {"page", "copy"})


def urls_of(output):
    return [json.loads(line)["url"] for line in output.read_text().splitlines()]


def owners(folder):
    """Return the processes that have a file of a folder open."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # it has just been closed
            if str(place.readlink()).startswith(f"{folder}/"):
                found.add(int(place.parts[2]))
    return found


def booked_pages(job):
    """Return the pages of all shards by their journals, and which of them are relevant."""
    found = []
    for journal in job.glob("shard-*/tres.run"):
        with closing(sqlite3.connect(journal)) as read:
            batches = read.execute("SELECT urls FROM batch ORDER BY number")
            urls = [url for (texts,) in batches for url in json.loads(texts)]
            steps = read.execute("SELECT url_number, relevant FROM page WHERE kind = 'page'")
            found += [(urls[number], relevant) for number, relevant in steps]
    return found
