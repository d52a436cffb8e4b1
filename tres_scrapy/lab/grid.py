"""The grid of runs, the results so far, and the distribution of runs to workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Final

from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.result import Result, Run
from tres_scrapy.url.message import reason

World = tuple[str, str, int, str]  # web, topic, seed of the web, kind of classifier
UNSEEDED: Final = ("corpus", "recorded")  # webs that are the same with every seed


def make_grid(
    web: str,
    pages: int,
    *,
    topics: Sequence[str],
    policies: Sequence[str],
    caps: Sequence[str],
    seeds: Sequence[int],
    starts: Callable[[str], Iterable[str]] = lambda topic: [""],
) -> list[Run]:
    """Return every run once, grouped by topic and seed; `starts` returns those of a topic."""
    runs = (
        Run(web, topic, seed, policy, cap, pages, start)
        for topic in topics
        for seed, policy, cap, start in product(seeds, policies, caps, starts(topic))
    )
    return list(dict.fromkeys(runs))


def world_of(run: Run) -> World:
    """Return a key that is the same for all runs that can share a web and its judged pages."""
    seed = 0 if run.web in UNSEEDED else run.seed
    return run.web, run.topic, seed, POLICIES[run.policy].classifier


def read_results(directory: Path) -> tuple[list[Result], list[str]]:
    """Return the results in a directory, and one line about each damaged file."""
    results, faults = [], []
    for path in sorted(directory.glob("*.json")):
        try:
            result = Result.read(path)
            if result.run.name != path.stem:
                raise ValueError(f"it contains the run {result.run.name!r}")
            results.append(result)
        except (ValueError, KeyError, TypeError) as error:
            faults.append(f"{path} is damaged: {reason(error)}")
    return results, faults


class Shares:
    """Deal runs to workers: first a whole world to each, then half of what another has left.

    A worker removes runs from the front of its share, so every run is done once.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        worlds: defaultdict[World, list[Run]] = defaultdict(list)
        for run in runs:
            worlds[world_of(run)].append(run)
        self._waiting = sorted(worlds.values(), key=len)
        self._dealt: list[list[Run]] = []

    def deal(self) -> list[Run]:
        """Return the largest waiting world, else half of the largest share, else [].

        A share is ordered by policy, so each half has other policies.
        """
        if self._waiting:
            share = self._waiting.pop()
        else:
            largest = max(self._dealt, key=len, default=[])
            half = len(largest) // 2
            share = largest[half:]
            del largest[half:]
        self._dealt.append(share)
        return share
