from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from conftest import PROJECT

from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.links.code import Names, Wordbook
from tres_scrapy.topic.judge import Judge, Source, judge_pages
from tres_scrapy.topic.judge_process import PageError, Task, Worker, WorkerError
from tres_scrapy.topic.pack import Pack

pytestmark = pytest.mark.usefixtures("loaded_python")

FOOD = PROJECT / "models" / "food"
LIMITS = ReadingLimits()
PAGES = [
    Source(
        f"<title>{word} soup</title><p>{word} butter</p><a href=/{word}>{word}</a>".encode(), url
    )
    for word, url in (("pea", "http://a.test/"), ("engine", "http://b.test/"))
]


class Odd(Task):
    """Does in the worker process what the text of a page says."""

    def load(self, begin):
        if self.content:  # in one test
            sys.exit(3)
        self.__dict__["begin"] = begin  # a frozen dataclass
        return self.judge

    def judge(self, sources):
        texts = [source.body.decode() for source in sources]
        for number, html in enumerate(texts):
            self.begin(number)
            if html == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            if html.startswith("kill "):  # as a machine short of memory does: once, or each time
                mark = Path(html.removeprefix("kill "))
                if mark.name == "always" or not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            if html == "sleep":
                time.sleep(60)
            if html == "spin":
                re.fullmatch("(a|a)*b", "a" * 60)  # holds Python's lock
            if html.startswith("hold "):  # until there is a file
                while not Path(html.removeprefix("hold ")).exists():
                    time.sleep(0.01)
            if html == "raise":
                raise ValueError("no such page")
            if html == "print":
                print("something")
        self.begin(None)
        return [html.upper() for html in texts]


def odd(**options):
    worker = Worker(Odd(FOOD, LIMITS), **options)
    worker.wait()
    return closing(worker)


def asked(worker, *texts):
    return worker([Source(text.encode(), "http://a.test/") for text in texts])


@pytest.mark.long
def test_process_gives_same_verdicts():
    pack = Pack.load(FOOD)
    with closing(Worker(Task(FOOD, LIMITS))) as worker:
        worker.wait()
        theirs = worker(PAGES)
    for read, own in zip(theirs, judge_pages(pack, PAGES, limits=LIMITS), strict=True):
        assert (read.page, read.mark) == (own.page, own.mark)
        assert read.is_missing == own.is_missing
        assert read.probability == own.probability
        np.testing.assert_array_equal(read.actions, own.actions)
        for sent, kept in zip(read.cues, own.cues, strict=True):
            np.testing.assert_array_equal(sent, kept)


def test_fatal_page_spares_the_others():
    with odd() as worker, closing(Judge(None, worker)) as judge:
        futures = [
            judge.submit(Source(text.encode(), "http://a.test/"))
            for text in ("a", "crash", "b", "c")
        ]
        with pytest.raises(PageError, match=r"^the process that judges pages ended$"):
            futures.pop(1).result(30)
        assert [future.result(30) for future in futures] == ["A", "B", "C"]


@pytest.mark.long
def test_death_of_one_process_spares_the_other(tmp_path):
    with odd() as one, odd() as other, closing(Judge(None, one, other)) as judge:
        held = judge.submit(Source(f"hold {tmp_path / 'go on'}".encode(), "http://a.test/"))
        for _ in range(2):  # both in the process that is free
            with pytest.raises(PageError, match="ended"):
                judge.submit(Source(b"crash", "http://a.test/")).result(30)
        assert judge.submit(Source(b"a", "http://a.test/")).result(30) == "A"
        assert not held.done()
        (tmp_path / "go on").touch()
        assert held.result(30).startswith("HOLD")


@pytest.mark.long
def test_two_processes_give_the_verdicts_of_one():
    words = [f"{first} {then}" for first in ("pea", "engine", "match") for then in "abcdefgh"]
    pages = [
        Source(
            f"<p>{said} butter</p><a href=/{number}>{said}</a>".encode(), f"http://{number}.test/"
        )
        for number, said in enumerate(words)
    ]
    alone = judge_pages(Pack.load(FOOD), pages, limits=LIMITS, words=Wordbook())
    task = Task(FOOD, LIMITS, cues=True)
    with (
        closing(Worker(task)) as one,
        closing(Worker(task)) as other,
        closing(Judge(None, one, other, together=4)) as judge,
    ):
        one.wait()
        other.wait()
        first = [judge.submit(page) for page in pages[:8]]
        judged = [future.result(60) for future in first]
        os.kill(one._process.pid, signal.SIGKILL)
        one._process.wait()
        rest = [judge.submit(page) for page in pages[8:]]
        judged += [future.result(60) for future in rest]
    known, names = Names(), Names()
    for ours, theirs in zip(judged, alone, strict=True):
        assert (ours.page, ours.mark) == (theirs.page, theirs.mark)
        assert ours.probability == pytest.approx(theirs.probability, abs=1e-3)
        np.testing.assert_allclose(ours.actions, theirs.actions, atol=1e-3)
        np.testing.assert_array_equal(ours.cues.codes, theirs.cues.codes)
        known.learn(theirs.names)
        names.learn(ours.names)
    assert {*names.since(0)} == {*known.since(0)}


@pytest.mark.long
def test_slow_page_ends_the_process_once():
    with odd(patience=2.0) as worker, closing(Judge(None, worker)) as judge:
        starts = []
        start = worker._start
        worker._start = lambda: starts.append(1) or start()
        texts = (b"a", b"b", b"sleep", b"c")
        futures = [judge.submit(Source(text, "http://a.test/")) for text in texts]
        with pytest.raises(PageError, match="took more than"):
            futures.pop(2).result(60)
        assert [future.result(60) for future in futures] == ["A", "B", "C"]
        assert len(starts) == 1


def test_slow_page_is_given_up():
    with odd(patience=0.3) as worker:
        with pytest.raises(PageError, match=r"took more than 0\.3 s"):
            asked(worker, "sleep")
        assert asked(worker, "a") == ["A"]


@pytest.mark.long
def test_killed_process_judges_its_pages_once_more(tmp_path):
    with odd() as worker:
        assert asked(worker, "a", f"kill {tmp_path / 'x'}")[0] == "A"
        with pytest.raises(PageError, match="ended") as error:
            asked(worker, "a", f"kill {tmp_path / 'always'}")
        assert error.value.page == 1
        assert asked(worker, "a") == ["A"]


@pytest.mark.long
def test_reading_of_a_page_has_a_clock():
    with closing(Worker(Odd(FOOD, LIMITS, reading=0.2))) as worker:
        worker.wait()
        with pytest.raises(PageError, match=r"took more than 0\.2 s") as caught:
            asked(worker, "a", "spin")
        assert caught.value.page == 1
        assert caught.value.is_slow
        assert asked(worker, "a", "b") == ["A", "B"]


def test_page_error_ends_nothing():
    with odd() as worker:
        with pytest.raises(PageError, match=r"^ValueError: no such page$"):
            asked(worker, "raise")
        assert asked(worker, "print", "a") == ["PRINT", "A"]


def test_long_page_is_cut_before_sending():
    with closing(Worker(Odd(FOOD, ReadingLimits(html=3)))) as worker:
        worker.wait()
        assert asked(worker, "abcdefghijklmno") == ["ABCDEFGHIJKL"]


@pytest.mark.long
def test_failed_start_is_one_line():
    with closing(Worker(Odd(FOOD, LIMITS, content=("none",)))) as worker:
        with pytest.raises(WorkerError, match=r"does not start \(exit status 3\)"):
            worker.wait()
        with pytest.raises(WorkerError):
            asked(worker, "a")


def test_process_ends_with_the_crawler():
    crawler = f"""if True:
        import os
        from pathlib import Path
        from tres_scrapy.config.limit import ReadingLimits
        from tres_scrapy.topic.judge_process import Task, Worker
        Worker(Task(Path({str(FOOD)!r}), ReadingLimits())).wait()
        os.kill(os.getpid(), 9)
    """
    # standard error ends when all processes that hold it end, the worker too
    done = subprocess.run(
        [sys.executable, "-c", crawler], cwd=PROJECT, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert done.stderr == b""
