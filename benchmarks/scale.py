"""Time per step and memory per sample, for frontiers from 10^4 to 10^7 samples.

    python benchmarks/scale.py [--samples 10000000] [--output FILE]

One TRES crawl without HTTP: it chooses a sample, learns whether the page is relevant, and gets 40
links on hosts of heavy-tailed popularity. Each line is the mean of up to 500 pages since the last
line. Memory is the growth of the process since its start, including URLs. URLs have some 60
characters, and nine of ten are new.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.tres import TresPolicy
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.text import Page
from tres_scrapy.topic.pack import Judged

LINKS, HOSTS, PAGES_A_HOST = 40, 500_000, 10_000
WINDOW = 500  # pages averaged per line
MARKS = sorted({*(10**n for n in range(4, 8)), *(4 * 10**n for n in range(4, 7)), 800_000})
FIELDS = (
    "samples",
    "pages",
    "leaves",
    "bytes_per_sample",
    "choice_ms",
    "insertion_ms",
    "experience_ms",
    "learning_ms",
    "page_ms",
)


class Timer:
    """Sum the seconds of functions by name."""

    def __init__(self) -> None:
        self.seconds = Counter[str]()

    def time(self, owner: object, method: str, name: str) -> None:
        """Time a method of an object from now on."""
        function: Callable[..., Any] = getattr(owner, method)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = perf_counter()
            result = function(*args, **kwargs)
            self.seconds[name] += perf_counter() - start  # type: ignore[assignment]
            return result

        setattr(owner, method, timed)


class Generator:
    """Generate the links of pages, and decide which pages are relevant."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def links(self) -> tuple[list[str], NDArray[np.float32]]:
        """Return the URLs and features 4 to 6 [n, 3] of the links of a page."""
        hosts = (HOSTS * self._random.random(LINKS) ** 3).astype(int).tolist()
        pages = self._random.integers(PAGES_A_HOST, size=LINKS).tolist()
        urls = [
            f"https://www.host-{host}.test/articles/2026/the-title-of-a-page-{page:06}.html"
            for host, page in zip(hosts, pages, strict=True)
        ]
        actions = self._random.random((LINKS, 3), dtype=np.float32)
        actions[:, :2] = actions[:, :2] > 0.5
        return urls, actions

    def reward(self, x: NDArray[np.float32]) -> float:
        """Return the reward of a sample x [9], which mostly agrees with its anchor."""
        return float((x[5] > 0.5) != (self._random.random() < 0.05))


def grown(samples: int, seed: int) -> Iterator[dict[str, float]]:
    """Yield the figures at each mark while the frontier grows."""
    store = SampleStore(DomainLedger(inlinks=True))
    policy = TresPolicy(store, PolicyInputs(seed=seed))
    crawl = Crawl(store, policy)
    generator, timer = Generator(seed), Timer()
    for owner, method, name in (
        (crawl, "next", "choice_ms"),
        (store, "add", "insertion_ms"),
        (policy.tree, "insert", "insertion_ms"),
        (policy.tree, "add_experience", "experience_ms"),
        (policy, "learn", "learning_ms"),
        (crawl, "book", "page_ms"),
    ):
        timer.time(owner, method, name)
    crawl.add_seeds(Outlinks(["http://seed.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    start, before = 0, resident()  # pages and bytes
    for mark in (mark for mark in MARKS if mark <= samples):
        while len(store) < mark:
            if crawl.pages - start == WINDOW:
                timer.seconds.clear()
                start = crawl.pages
            decision = crawl.next()
            assert decision is not None
            reward = generator.reward(store.features(np.array([decision.row]))[0])
            urls, actions = generator.links()
            anchors = [f"the words on link {url[-11:-5]}" for url in urls]
            judged = Judged(Page("", "", "", ()), reward, actions, on_topic=reward > 0)
            crawl.book(decision.row, judged, Outlinks(urls, anchors, actions))
        seconds = timer.seconds + Counter(page_ms=timer.seconds["choice_ms"])
        yield {
            "samples": mark,
            "pages": crawl.pages,
            "leaves": len(policy.tree),
            "bytes_per_sample": round((resident() - before) / len(store)),
            **{name: round(1000 * s / (crawl.pages - start), 3) for name, s in seconds.items()},
        }


def resident() -> int:
    """Return the bytes of memory of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write the figures to this CSV file")
    options = parser.parse_args()
    file = options.output.open("w", newline="", encoding="utf-8") if options.output else None
    with file or nullcontext(sys.stdout) as lines:
        writer = csv.DictWriter(lines, FIELDS, lineterminator="\n")
        writer.writeheader()
        for row in grown(options.samples, options.seed):
            writer.writerow(row)
            lines.flush()


if __name__ == "__main__":
    main()
