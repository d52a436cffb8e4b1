"""A crawl of the web in hostile.py, which is full of traps, as a user would run it."""

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from urllib.parse import urlsplit

import hostile
import pytest
from conftest import PROJECT, stats_of
from trap import TRAPS

pytestmark = pytest.mark.slow

WATCHED = PROJECT / "tests" / "watched.py"

MAX = 10  # pages of one domain
TIMEOUT = 8  # seconds; only this, the delay and the rests differ from the default settings
STALL = 0.5  # seconds of the processor
MEGABYTE = 2**20
MEMORY = 200 * MEGABYTE  # more than the honest pages alone, at most

# the failure counted for each trap that returns no page: the trap, or its name and link
FAILURES = {
    "BadGzipFile": ["broken-gzip"],
    "DownloadCancelledError": ["gigabyte", "endless-body"],
    "http_302": ["schemes: file", "schemes: data"],
    "not_html": ["wrong-type"],
    "redirect_limit": ["endless-redirect", "refresh-loop"],
    "soft_404": ["soft-404"],
    "too_large": ["gzip-bomb", "gzip-in-gzip", "empty-gzip"],
}
# the same for traps whose host is put to rest
POSTPONED = {
    "DownloadFailedError": ["endless-headers", "reset-at-once", "wrong-length", "resetting-robots"],
    "DownloadTimeoutError": ["slow-drip"],
    "http_500": ["failing-robots"],
}


@dataclass
class Crawl:
    """The results of a crawl: exit status, log, items, requested URLs, memory and stalls."""

    status: int
    log: str
    items: list
    asked: list
    memory: int  # bytes, at most
    stall: float  # seconds of the processor that the reactor stood, at most

    def stat(self, name):
        return stats_of(self.log).get(name, 0)

    def harvested(self, host):
        return [item["final_url"] for item in self.items if host in item["final_url"]]

    def pages(self, host):
        paths = [urlsplit(url) for url in self.asked]
        return [url.path for url in paths if url.hostname == host and url.path != "/robots.txt"]


def crawl(folder, seed):
    output, log, stall = (folder / name for name in ("pages.jsonl", "log.txt", "stall.txt"))
    arguments = ["-a", "topic=food", "-a", f"seed={seed}", "-a", f"max_per_domain={MAX}"]
    arguments += ["-a", f"output={output}", "-s", "DOWNLOAD_DELAY=0"]
    arguments += ["-s", f"DOWNLOAD_TIMEOUT={TIMEOUT}", "-a", "rest=0.1"]
    with hostile.serve() as web, log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, WATCHED, stall, "crawl", "tres", *arguments],
            cwd=PROJECT,
            env=os.environ | {"http_proxy": f"http://127.0.0.1:{web.port}"},
            stderr=errors,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    items = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    unit = 1 if sys.platform == "darwin" else 1024
    said = log.read_text(encoding="utf-8")
    memory, longest = usage.ru_maxrss * unit, float(stall.read_text(encoding="utf-8"))
    return Crawl(process.returncode, said, items, web.asked, memory, longest)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return crawl(tmp_path_factory.mktemp("hostile"), hostile.HUB)


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    return crawl(tmp_path_factory.mktemp("honest"), hostile.HUB + "honest")


def test_hostile_crawl_ends_cleanly(whole):
    assert whole.status == 0, whole.log
    assert "'finish_reason': 'frontier_exhausted'" in whole.log
    assert "Traceback" not in whole.log


@pytest.mark.parametrize("name", TRAPS)
def test_honest_page_is_harvested(whole, name):
    assert TRAPS[name].dish in whole.harvested("test")


@pytest.mark.long
def test_traps_take_little_memory(whole, honest):
    assert honest.status == 0, honest.log
    assert len(honest.items) == len(TRAPS) + 1
    assert whole.memory - honest.memory < MEMORY


def test_no_answer_holds_the_reactor(whole):
    assert 0 < whole.stall < STALL


@pytest.mark.parametrize(("kind", "traps"), FAILURES.items())
def test_failures_are_counted_by_kind(whole, kind, traps):
    assert whole.stat(f"tres/failures/{kind}") >= len(traps), traps


@pytest.mark.parametrize(("kind", "traps"), POSTPONED.items())
def test_failing_hosts_rest(whole, kind, traps):
    assert whole.stat(f"tres/postponed/{kind}") >= len(traps), traps


@pytest.mark.parametrize("name", ["calendar", "session", "capped", "many-links"])
def test_endless_site_stops_at_max(whole, name):
    assert len(whole.pages(f"{name}.test")) == MAX


@pytest.mark.parametrize("name", ["failing-robots", "resetting-robots"])
def test_nothing_is_fetched_without_rules(whole, name):
    assert f"http://{name}.test/robots.txt" in whole.asked
    assert whole.pages(f"{name}.test") == []


def test_first_rules_of_a_long_file_are_obeyed(whole):
    assert whole.pages("announced-robots.test") == ["/dish"]


def test_dead_links_end_no_domain(whole):
    assert len(whole.pages("dead-links.test")) == 1 + 80
    assert whole.stat("tres/domains_given_up") == 0


def test_redirects_respect_max(whole):
    assert len(whole.pages("redirect-to-capped.test")) == 19
    assert whole.stat("tres/failures/redirect_closed") >= 18 - MAX


@pytest.mark.parametrize("name", ["redirect-loop", "redirect-itself"])
def test_redirect_loop_is_closed(whole, name):
    assert len(whole.pages(f"{name}.test")) <= 5


@pytest.mark.parametrize("name", ["endless-redirect", "refresh-loop"])
def test_redirects_without_end_are_left(whole, name):
    assert len(whole.pages(f"{name}.test")) == 12  # the first, ten more and the dish


@pytest.mark.parametrize("name", ["session", "canonical", "near-duplicates"])
def test_repeated_page_is_harvested_once(whole, name):
    assert len(whole.harvested(f"/{name}.test/")) == 1
    assert whole.stat("tres/duplicates") >= 3 * (MAX - 1)


def test_tracking_parameters_are_ignored(whole):
    assert Counter(whole.pages("tracking.test")) == {"/": 1, "/menu": 1, "/dish": 1}


def test_a_soft_404_leads_nowhere(whole):
    assert sorted(whole.pages("soft-404.test")) == ["/", "/dish"]


@pytest.mark.parametrize(
    "place",
    ["xn--jrgens-kche-thbh.test", "port.test:8081", "userinfo.test", "upper.test"],
)
def test_odd_addresses_are_fetched_from(whole, place):
    assert f"http://{place}/dish" in whole.asked
    assert f"http://{place}/dish" in whole.harvested("test")


def test_nothing_but_http_is_asked_for(whole):
    assert {urlsplit(url).scheme for url in whole.asked} == {"http"}
    assert {urlsplit(item["final_url"]).scheme for item in whole.items} == {"http"}


def test_passwords_in_urls_are_not_told(whole):
    assert "secret" not in whole.log
    assert "secret" not in json.dumps(whole.items)
