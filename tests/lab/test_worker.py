from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from comparing.condition import Crawl
from comparing.result import Result, Run, code_version, make_grid, read_results
from comparing.worker import Advance, RunFailure, shares_of, work

pytestmark = pytest.mark.usefixtures("loaded_python")


@dataclass(frozen=True)
class Opener:
    """Opens worlds whose crawls report how many worlds the process opened before."""

    opened = 0

    def open(self, run: Run) -> Crawl:
        Opener.opened += 1
        return self.crawl

    def crawl(self, run: Run, progress: Callable[[int], None]) -> Result:
        progress(run.pages // 2)
        if run.policy == "random":
            raise ValueError("no luck\ntoday")
        if run.policy == "oracle":
            os.kill(os.getpid(), signal.SIGKILL)
        progress(run.pages // 2)
        pages = 0 if run.policy == "breadth_first" else run.pages
        return Result(run, pages, Opener.opened, os.getpid(), 0, False, 0.0, [])


def grid(*policies: str, seeds: int = 2) -> list[Run]:
    return make_grid(
        "synthetic",
        50,
        topics=["food"],
        policies=policies,
        caps=["none", "10"],
        seeds=range(seeds),
    )


def test_one_process_opens_a_world(tmp_path: Path) -> None:
    runs = grid("tres", "tree_random")
    events = list(work(runs, 1, Opener().open, tmp_path))
    results = [event for event in events if isinstance(event, Result)]
    assert {result.run for result in results} == set(runs)
    processes = {(result.run.seed, result.domains) for result in results}
    assert [seed for seed, _ in sorted(processes)] == [0, 1], "a process for each world"
    assert {result.relevant for result in results} == {1}, "which it opens once"
    pages = sum(event.pages for event in events if isinstance(event, Advance))
    assert pages == sum(run.pages for run in runs)
    assert len(read_results(tmp_path)[0]) == len(runs)
    assert {result.code for result in [*results, *read_results(tmp_path)[0]]} == {code_version()}


def test_large_worlds_are_split() -> None:
    runs = grid("tres", "random")
    assert [len(share) for share in shares_of(runs, 1)] == [4, 4]
    shares = shares_of(runs, 4)
    assert [{run.policy for run in share} for share in shares[:2]] == [{"tres"}, {"random"}]
    for jobs in range(1, 20):
        shares = shares_of(runs, jobs)
        assert len(shares) == min(max(jobs, 2), len(runs))
        assert Counter(run for share in shares for run in share) == Counter(runs)
    assert shares_of([], 3) == []


def test_failed_run_does_not_stop_others(tmp_path: Path) -> None:
    runs = grid("random", "oracle", "tres", seeds=1)
    events = list(work(runs, 1, Opener().open, tmp_path))
    failures = [event for event in events if isinstance(event, RunFailure)]
    assert [event.run.policy for event in failures] == ["random", "random", "oracle", "oracle"]
    assert [event.reason for event in failures[:2]] == ["ValueError: no luck today"] * 2
    said = "its process ended with exit status "
    assert all(event.reason.startswith(said) for event in failures[2:])
    assert "in crawl" in failures[0].trace
    assert {each.run for each in read_results(tmp_path)[0]} == set(runs[4:])


def test_a_run_without_a_page_fails(tmp_path: Path) -> None:
    events = list(work(grid("breadth_first", seeds=1), 1, Opener().open, tmp_path))
    reasons = [event.reason for event in events if isinstance(event, RunFailure)]
    assert reasons == ["ValueError: no seed brought a page"] * 2
    assert read_results(tmp_path)[0] == []


def test_processes_end_with_the_iterator(tmp_path: Path) -> None:
    with closing(work(grid("tres", seeds=4), 2, Opener().open, tmp_path)) as events:
        result = next(event for event in events if isinstance(event, Result))
        os.kill(result.domains, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(result.domains, 0)
