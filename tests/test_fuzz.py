"""The fuzzer runs and finds known faults."""

import subprocess
import sys
import time
from random import Random

import pytest
from conftest import PROJECT


@pytest.fixture
def fuzz(monkeypatch):
    pytest.importorskip("tres_scrapy.lab", reason="the fuzzer changes the pages of its webs")
    monkeypatch.syspath_prepend(PROJECT / "benchmarks")
    import fuzz  # noqa: PLC0415 - it stands there only now

    return fuzz


class Reader:
    """A target that fails on a mark in a text."""

    name, share = "reader", 1.0

    def draw(self, random):
        return "".join(random.choices("abc<", k=random.randrange(20)))

    def check(self, text):
        assert "<" not in text, "a mark"


def test_fault_is_reported_once(fuzz):
    report = fuzz.feed(Reader(), 200, seed=1)
    (finding,) = report.findings.values()
    assert 1 < finding.count < 200
    told, smallest = fuzz.described(Reader(), report)
    assert "AssertionError: a mark" in told
    assert smallest == "    '<'"


def test_endless_input_is_a_fault(fuzz, monkeypatch):
    class Endless(Reader):
        def check(self, text):
            while True:
                pass

    monkeypatch.setattr(fuzz, "SECONDS", 0.05)
    (finding,) = fuzz.feed(Endless(), 1, seed=1).findings.values()
    assert finding.fault.error.startswith("EndlessError")


def test_long_page_may_take_longer(fuzz):
    short, long = (fuzz.allowed(fuzz.Pages(), "x" * length) for length in (10, 10**6))
    assert 1 < short < 1.1
    assert long == fuzz.SECONDS == fuzz.allowed(Reader(), "x")
    assert fuzz.allowed(fuzz.Responses(), "x") == 0.5


def test_memory_hog_is_a_fault(fuzz, monkeypatch):
    class Greedy(Reader):
        def check(self, text):
            bytearray(b"x") * 2**26

    monkeypatch.setattr(fuzz, "MEMORY", -1)
    assert fuzz.fault(Greedy(), "").error.startswith("MemoryError")


def test_inputs_are_repeatable(fuzz, tmp_path, monkeypatch):
    now = time.gmtime(10**9)
    monkeypatch.setattr("zipfile.time.localtime", lambda _: now)  # vector files note the second
    first, again = (list(fuzz.targets(tmp_path / name)) for name in "ab")
    assert sum(target.share for target in first) == pytest.approx(1)
    for target, same in zip(first, again, strict=True):
        drawn = [target.draw(Random(number)) for number in range(20)]
        assert drawn == [same.draw(Random(number)) for number in range(20)]
        assert len(set(drawn)) > 12


def test_times_of_inputs_are_reported(fuzz, monkeypatch):
    monkeypatch.setattr(fuzz, "STEP", 0)
    report = fuzz.feed(Reader(), 50, seed=1)
    assert len(report.times) == 50
    assert report.row().endswith(f" | {len(report.findings)} |")
    assert next(iter(fuzz.described(Reader(), report))).startswith("reader, ")


@pytest.mark.slow
@pytest.mark.usefixtures("fuzz")
def test_guided_inputs_have_no_finding():
    pytest.importorskip("atheris", reason="chooses the inputs")
    command = [sys.executable, "benchmarks/fuzz.py", "--guided", "1", "--target", "of_tdm_file"]
    run = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "of_tdm_file, kept for new code: " in run.stdout


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.usefixtures("fuzz")
def test_no_target_has_a_finding():
    command = [sys.executable, "benchmarks/fuzz.py", "--inputs", "2000"]
    run = subprocess.run(
        command, cwd=PROJECT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    rows = [line for line in run.stdout.splitlines() if line.endswith("| 0 |")]
    assert len(rows) == 11
