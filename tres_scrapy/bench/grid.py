"""Which runs there are, which are done, and how the others are dealt out to workers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path

from tres_scrapy.bench.result import Result, Run
from tres_scrapy.page.file import reason
from tres_scrapy.policies.registry import POLICIES

World = tuple[str, str, int, str]  # web, topic, seed, kind of classifier


def make_grid(
    web: str,
    pages: int,
    *,
    topics: Iterable[str],
    policies: Iterable[str],
    caps: Iterable[str],
    seeds: Iterable[int],
) -> list[Run]:
    """Return every run, each once; those of a topic and seed stand together."""
    choices = product(topics, seeds, policies, caps)
    runs = (Run(web, topic, seed, policy, cap, pages) for topic, seed, policy, cap in choices)
    return list(dict.fromkeys(runs))


def world_of(run: Run) -> World:
    """Return what the runs that can share a web and its judged pages have in common."""
    return run.web, run.topic, run.seed, POLICIES[run.policy].classifier


def read_results(directory: Path) -> tuple[list[Result], list[str]]:
    """Return the results in a directory, and a line on each file that is none."""
    results, faults = [], []
    for path in sorted(directory.glob("*.json")):
        try:
            result = Result.read(path)
            if result.run.name != path.stem:
                raise ValueError(f"it holds the run {result.run.name!r}")
            results.append(result)
        except (ValueError, KeyError, TypeError) as error:
            faults.append(f"{path} is damaged: {reason(error)}")
    return results, faults


class Shares:
    """Runs dealt out to workers: a world to each, then halves of what others have left.

    Who takes a share works it off from its front, so that every run is done once.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        worlds: defaultdict[World, list[Run]] = defaultdict(list)
        for run in runs:
            worlds[world_of(run)].append(run)
        self._waiting = sorted(worlds.values(), key=len)
        self._dealt: list[list[Run]] = []

    def deal(self) -> list[Run]:
        """Return the largest world nobody has taken, or half of the largest share; [] at the end.

        A share has policies in their order, so that a half is one of policies.
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
