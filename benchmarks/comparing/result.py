"""The runs of a benchmark and their results."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from typing import Final, Self

from tres_scrapy.crawl.registry import kind_of
from tres_scrapy.url.message import reason
from tres_scrapy.url.whole_file import check_numbers, whole_file

_LARGEST: Final = 1e15  # upper limit of any count


@dataclass(frozen=True, order=True)
class Run:
    """One crawl of the benchmark; the synthetic web and the crawler both use `seed`.

    `start` holds the URLs to start from, with commas between; "": where the web says.
    """

    web: str
    topic: str
    seed: int
    policy: str
    cap: str
    pages: int
    start: str = ""

    @property
    def name(self) -> str:
        """The run as a file name; a start is in it as a hash."""
        policy = self.policy.replace(":", ".")
        parts = [self.web, self.topic, self.seed, policy, self.cap, self.pages]
        if self.start:
            parts.append(hashlib.sha256(self.start.encode()).hexdigest()[:8])
        return "-".join(map(str, parts))

    @property
    def trial(self) -> tuple[str, int]:
        """Start and seed, which a run has in common with one run of every other policy."""
        return self.start, self.seed


@dataclass(frozen=True)
class Result:
    """The result of a crawl, counted by the web; `exhausted` is whether links ran out.

    `found` has the number of fetches after which each relevant page was found. No count of fetches
    has those of robots.txt. `seconds` is processor time. `code` is the
    version of the code that crawled, "" if unknown.
    """

    run: Run
    pages: int
    relevant: int
    domains: int
    fetches: int
    exhausted: bool
    seconds: float
    found: list[int]
    code: str = ""

    @property
    def harvest(self) -> float:
        """The harvest rate: the share of relevant pages, 0 without pages."""
        return self.relevant / self.pages if self.pages else 0.0

    def found_after(self, fetches: int) -> int:
        """Return how many relevant pages the first `fetches` fetches found."""
        return bisect_right(self.found, fetches)

    @property
    def area(self) -> int:
        """The area under the curve of relevant pages over the first `run.pages` fetches.

        It is the sum, over these fetches, of the relevant pages found so far.
        """
        return sum(max(0, self.run.pages + 1 - each) for each in self.found)

    def write(self, directory: Path) -> None:
        """Write the result as a JSON file, atomically."""
        with whole_file(directory / f"{self.run.name}.json") as file:
            file.write(json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote; raise ValueError, KeyError or TypeError for anything else."""
        facts = json.loads(path.read_bytes())
        facts["run"] = Run(**facts["run"])
        result = cls(**facts)
        for name in ("pages", "relevant", "domains", "fetches", "seconds", "found"):
            check_numbers(name, facts[name], _LARGEST)
        return result


WorldKey = tuple[str, str, int, str]  # web, topic, seed of the web, kind of classifier
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


def world_of(run: Run) -> WorldKey:
    """Return a key that is the same for all runs that can share a web and its judged pages."""
    seed = 0 if run.web in UNSEEDED else run.seed
    return run.web, run.topic, seed, kind_of(run.policy).classifier


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


DECIDING: Final = (
    "agent",
    "crawl",
    "frontier",
    "lab/webs",
    "links",
    "page",
    "topic",
    "url",
)  # folders whose code affects what a crawl fetches


@cache
def code_version() -> str:
    """Return a hash of the code that affects results: webs, policies and what they use."""
    package, digest = files("tres_scrapy"), hashlib.sha256()
    for name in DECIDING:
        for source in _sources(package / name):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def _sources(folder: Traversable) -> Iterator[Traversable]:
    for each in sorted(folder.iterdir(), key=lambda each: each.name):
        if each.is_dir():
            yield from _sources(each)
        elif each.name.endswith(".py"):
            yield each
