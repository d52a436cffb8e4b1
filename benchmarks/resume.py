"""Measure how long it takes to resume a crawl from its JOBDIR.

    python benchmarks/resume.py [--samples 1000000] [--output FILE]

A crawl over generated links (40 new links per page, 80,000 hosts) is journalled step by step and
recovered in another process. For comparison: the time to read the same file.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import numpy as np

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.config.learning import LearningOptions
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import make_policy
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.ledger import DomainLedger
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.copies import PHRASES, SKETCH
from tres_scrapy.page.text import Page
from tres_scrapy.run.journal import Journal
from tres_scrapy.run.recovery import recover
from tres_scrapy.run.run_file import NAME
from tres_scrapy.topic.pack import Judged

LINKS, HOSTS, PAGES_A_HOST = 40, 80_000, 1_000
# Learning takes most of the time of a crawl, but recovery does not repeat it.
SAID = 100  # words of a page that its fingerprint has
SETUP = PolicyInputs(learning=LearningOptions(update_period=1_000))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--output", type=Path, help="also write the figures to this file")
    parser.add_argument("--recover", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.recover is not None:
        print(json.dumps(recovered(options.recover)))
        return
    with TemporaryDirectory() as directory:
        figures = write(Path(directory), options.samples // LINKS)
        command = [sys.executable, __file__, "--recover", directory]
        answer = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
        figures |= json.loads(answer.stdout)
    lines = [f"{name}: {value:.4g}" for name, value in figures.items()]
    print("\n".join(lines))
    if options.output is not None:
        options.output.write_text("\n".join([*lines, ""]), encoding="utf-8")


def write(directory: Path, pages: int) -> dict[str, float]:
    """Journal a crawl of a number of pages; return the cost."""
    journal, crawl = Journal.open(directory, {}), new_crawl()
    random = np.random.default_rng(0)
    crawl.add_seeds(Outlinks(["http://seed.test/"], [""], np.zeros((1, 3), dtype=np.float32)))
    crawling = writing = 0.0
    while crawl.pages < pages:
        start = perf_counter()
        decision = crawl.next()
        assert decision is not None
        leased = perf_counter()
        journal.lease(crawl, decision)
        written = perf_counter()
        urls = [
            f"http://h{host}.test/{page}"
            for host, page in random.integers([HOSTS, PAGES_A_HOST], size=(LINKS, 2))
        ]
        actions = random.random((LINKS, 3), dtype=np.float32)
        relevant = bool(random.random() < 0.5)
        links = Outlinks(urls, ["an anchor of words"] * LINKS, actions)
        said = np.array([SAID, *random.integers(2**32, size=SAID + PHRASES)], dtype=np.uint32)
        mark = random.bytes(SKETCH) + said.tobytes()
        judged = Judged(Page("", "", "", ()), 0.5, actions, mark=mark, on_topic=relevant)
        booking = crawl.book(decision.row, judged, links)
        booked = perf_counter()
        journal.book(crawl, booking)
        writing += perf_counter() - booked + written - leased
        crawling += booked - written + leased - start
    start = perf_counter()
    journal.close()
    return {
        "samples": len(crawl.store),
        "leaves": float(crawl.policy.figures()["leaves"]),
        "megabytes": (directory / NAME).stat().st_size / 1e6,
        "ms_to_write_a_page": 1000 * writing / pages,
        "ms_of_the_crawl_a_page": 1000 * crawling / pages,
        "s_to_close": perf_counter() - start,
    }


def recovered(directory: Path) -> dict[str, float]:
    """Recover the crawl; return the times of recovery and of reading the file."""
    start = perf_counter()
    (directory / NAME).read_bytes()
    read = perf_counter()
    journal, crawl = Journal.open(directory, {}), new_crawl()
    recover(journal, crawl)
    assert crawl.next() is not None
    return {"s_to_read_the_file": read - start, "s_to_recover": perf_counter() - read}


def new_crawl() -> Crawl:
    """Return a new crawl."""
    store = SampleStore(DomainLedger(inlinks=True))
    return Crawl(store, make_policy("tres", store, SETUP))


if __name__ == "__main__":
    main()
