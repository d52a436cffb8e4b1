"""The live line of progress in a pseudo-terminal."""

import fcntl
import logging
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import contextmanager
from functools import partial
from threading import Thread
from types import SimpleNamespace

import pytest
from conftest import PROJECT, interpreter
from scrapy.settings import Settings

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.extensions import progress as module
from tres_scrapy.extensions.progress import Progress
from tres_scrapy.extensions.terminal import TerminalLine, fitted
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore

LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[[\w.]+\] [A-Z]+: ")


class Terminal:
    """A pseudo-terminal: a program writes to `file`; `shown` is all its output."""

    def __init__(self, columns):
        self._outer, inner = pty.openpty()
        self.file = os.fdopen(inner, "w")
        self.resize(columns)
        self.shown = ""
        self._reader = Thread(target=self._read)
        self._reader.start()

    def resize(self, columns):
        fcntl.ioctl(
            self.file, termios.TIOCSWINSZ, struct.pack("HHHH", columns and 40, columns, 0, 0)
        )

    def close(self):
        self.file.close()
        self._reader.join()
        os.close(self._outer)

    def _read(self):
        read = bytearray()
        while True:
            try:
                part = os.read(self._outer, 65536)
            except OSError:  # pseudo-terminals report the end this way
                part = b""
            if not part:
                break
            read += part
        self.shown = read.decode()

    @property
    def lines(self):
        """Return the text on the screen, where a carriage return overwrites the line."""
        lines = []
        for raw in self.shown.replace("\r\n", "\n").split("\n"):
            line = ""
            for part in raw.split("\r"):
                line = part + line[len(part) :]
            lines.append(line.rstrip())
        return lines


class Loop:
    """A looping call without a reactor: it calls once."""

    def __init__(self, function, *args):
        self._call = partial(function, *args)

    def start(self, interval, now):
        self._call()

    def stop(self):
        pass


@contextmanager
def terminal(columns):
    terminal = Terminal(columns)
    try:
        yield terminal
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("columns", "shown"),
    [(80, "10 pages · harvest 5 % · domains 3"), (30, "10 pages · harvest 5 %"), (5, "10 pages")],
)
def test_line_is_cut_at_the_end(columns, shown):
    assert fitted(["10 pages", "", "harvest 5 %", "domains 3"], columns) == shown


def test_log_lines_stay_whole():
    logger = logging.getLogger()
    with terminal(80) as screen:
        handler = logging.StreamHandler(screen.file)
        logger.addHandler(handler)
        line = TerminalLine(screen.file)
        assert line.shares_log
        for number in range(3):
            line.show(f"{number} pages of the live line")
            logger.warning("short %d", number)
        line.close()
        logger.warning("the end")
        logger.removeHandler(handler)
    assert screen.lines == ["short 0", "short 1", "short 2", "the end", ""]


def test_line_follows_terminal_width():
    with terminal(40) as screen:
        line = TerminalLine(screen.file)
        assert not line.shares_log
        line.show("10 pages", "harvest rate 5 %", "frontier 12,345")
        screen.resize(80)
        line.show("11 pages", "harvest rate 5 %", "frontier 12,345")
        line.close()
    assert "10 pages · harvest rate 5 %" in screen.shown
    assert "10 pages · harvest rate 5 % · frontier" not in screen.shown
    assert "11 pages · harvest rate 5 % · frontier 12,345" in screen.shown


def test_unknown_width_has_a_default():
    with terminal(0) as screen:
        line = TerminalLine(screen.file)
        line.show("10 pages", "harvest rate 5 %", "x" * 80)
        line.close()
    assert "\r10 pages · harvest rate 5 %" in screen.shown
    assert "x" not in screen.shown


@pytest.mark.parametrize("shards", [0, 1])
def test_live_line_is_not_of_a_shard(monkeypatch, shards):
    if shards:
        pytest.importorskip("tres_scrapy.cluster", reason="has the settings of shards")
    store = SampleStore(DomainLedger())
    crawl = Crawl(store, make_policy("tres", store, PolicyInputs()))
    health, sites = SimpleNamespace(in_doubt=False), SimpleNamespace(opens_at=None)
    learner = SimpleNamespace(crawl=crawl, health=health, sites=sites, listeners=[])
    crawler = SimpleNamespace(
        settings=Settings({"LOGSTATS_INTERVAL": 0, "TRES_SHARDS": shards}),
        signals=SimpleNamespace(connect=lambda *args, **kwargs: None),
        get_extension=lambda kind: learner,
        engine=SimpleNamespace(paused=True),
        stats=SimpleNamespace(get_value=lambda *_: 0.0),
    )
    with terminal(80) as screen:
        monkeypatch.setattr(sys, "stderr", screen.file)
        monkeypatch.setattr(module, "create_looping_call", Loop)
        progress = Progress.from_crawler(crawler)
        progress.spider_opened(SimpleNamespace(start_urls=[]))
        progress.spider_closed(None)
    shown = "paused · 0 pages · harvest 0.0 %"
    assert (shown in screen.shown) == (not shards)


@pytest.mark.long
def test_live_line_tears_no_log(tmp_path):
    options = ("-a", "topic=food", "-a", "pages=3", "-a", "web=synthetic")
    options += ("-a", f"output={tmp_path / 'pages.jsonl'}", "-s", "LOGSTATS_INTERVAL=0.2")
    options += ("-s", "DOWNLOAD_DELAY=1.5")  # longer than from one drawing to the next
    with terminal(200) as screen:
        command = [interpreter().path, "-m", "scrapy", "crawl", "tres", *options]
        process = subprocess.run(command, cwd=PROJECT, stderr=screen.file, timeout=120, check=False)
    assert process.returncode == 0, screen.shown
    assert re.search(r"\r[1-3]/3 pages · .*harvest [\d.]+ %.* · frontier ", screen.shown)
    reports = [line for line in screen.lines if "pages, harvest rate" in line]
    assert len(reports) == 1, "only the last is logged"
    assert LOG_LINE.match(reports[0])
    assert not [line for line in screen.lines if "·" in line], "nothing is left of it"
