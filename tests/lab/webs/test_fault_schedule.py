"""Faults that an offline web injects."""

import asyncio
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from conftest import PROJECT, interpreter

from tres_scrapy.lab.webs.fault import DNS, OF_HOSTS, OF_REQUESTS, TLS, Fault, FaultSchedule
from tres_scrapy.lab.webs.proxy import Proxy
from tres_scrapy.lab.webs.web import HTML, Answer, Count

URLS = [f"http://h{i}.test/" for i in range(1000)]


class Soup:
    name, seeds, search, https, notes = "soup", ("http://a.test/",), "", False, ()

    def answer(self, url):
        return Answer(200, b"<html>soup</html>", HTML, "page", relevant=True)

    def labels(self, urls):
        return [True] * len(urls)


def kinds(schedule, now):
    return [fault and fault.kind for fault in (schedule.meet(url, now) for url in URLS)]


def test_seed_decides_faults():
    schedules = [FaultSchedule.parse("default", seed) for seed in (1, 1, 2)]
    same, again, other = (kinds(schedule, 0.0) for schedule in schedules)
    assert same == again != other
    assert Counter(same).keys() == {None, *OF_HOSTS, *OF_REQUESTS} - {DNS, TLS}


def test_fault_of_host_passes():
    schedule = FaultSchedule.parse("busy=0.2:10")
    first = kinds(schedule, 100.0)
    assert kinds(schedule, 109.0) == first != kinds(schedule, 110.0)
    assert 150 < first.count("busy") < 250
    url = URLS[first.index("busy")]
    assert schedule.meet(url, 104.0).seconds == 6.0


def test_fault_of_request_may_not_repeat():
    schedule = FaultSchedule.parse("reset=0.5")
    assert {schedule.meet("http://a.test/", 0.0) for _ in range(50)} == {None, Fault("reset", 0.0)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("flood=0.1", "'flood' must be one of outage, busy, error, dns, tls, reset, drip, length"),
        ("reset", "must be KIND=SHARE:SECONDS"),
        ("reset=2", "SHARE must be 0 to 1"),
        ("drip=0.1:nan", "SECONDS 0 or more"),
        ("outage=0.1", "needs SECONDS: outage=0.1:20"),
    ],
)
def test_bad_schedule_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        FaultSchedule.parse(text)


def answered(schedule):
    """Return what a proxy sends for a page: its bytes, or the error of the connection."""

    async def ask():
        proxy = Proxy(Soup(), Count(), FaultSchedule.parse(schedule))
        reader, writer = await asyncio.open_connection("127.0.0.1", await proxy.start(0))
        writer.write(b"GET http://a.test/ HTTP/1.1\r\nConnection: close\r\n\r\n")
        try:
            return await reader.read()
        except ConnectionResetError as error:
            return error
        finally:
            writer.close()
            await proxy.stop()

    return asyncio.run(ask())


def test_each_fault_is_what_it_says():
    assert answered("reset=0").endswith(b"\r\n\r\n<html>soup</html>")
    assert answered("outage=1:9") == b""
    assert isinstance(answered("reset=1"), ConnectionResetError)
    busy, error = answered("busy=1:9"), answered("error=1:9")
    assert busy.startswith(b"HTTP/1.1 429 ")
    assert b"Retry-After: 9\r\n" in busy
    assert error.startswith(b"HTTP/1.1 503 ")
    assert answered("dns=1:9").startswith(b"HTTP/1.1 502 ")
    assert answered("tls=1:9").endswith(b"soup</html>"), "there is no TLS in http"
    assert b"Content-Length: 1017\r\n" in answered("length=1")
    assert answered("drip=1:0.1").endswith(b"\r\n\r\n<html>soup</html>")


@pytest.mark.parametrize("spider", [[], ["--own"]])
@pytest.mark.long
def test_kills_with_faults_lose_nothing(spider):
    """The benchmark in small: its exit status shows whether it lost anything."""
    kill = ("benchmarks/kill.py", "--pages", "40", "--kills", "1")
    command = [interpreter().path, *kill, *spider]
    command += ["--faults", "outage=0.1:3,busy=0.1:3,error=0.05:3,reset=0.05,length=0.05"]
    process = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "'feed items missing': 0" in process.stdout


@pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler makes the failing disk")
@pytest.mark.long
def test_failing_disk_loses_nothing():
    kill = ("benchmarks/kill.py", "--disk", "--pages", "40", "--kills", "7")
    command = [sys.executable, *kill]
    process = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "'start, SIGKILL': " in process.stdout
