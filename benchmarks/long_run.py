"""A long crawl of the synthetic web: memory, speed, leaves and frontier over time.

    python benchmarks/long_run.py [--pages 100000] [--every 1000] [--output DIRECTORY]

Runs `scrapy crawl tres` over HTTP at full speed, 16 requests at a time. Each line covers the pages
since the last line. DIRECTORY gets long_run.csv, line by line, and long_run.svg.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import matplotlib as mpl
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.utils.project import get_project_settings

from tres_scrapy.extensions.learner import Learner

FIELDS = (
    *("pages", "seconds", "pages_per_second", "cpu_ms_per_page", "megabytes", "judge_megabytes"),
    *("frontier", "samples", "leaves", "harvest_rate", "relevant_domains"),
)


class Sampler:
    """Write a line each time a number of pages has been booked."""

    def __init__(self, crawler: Crawler, every: int, path: Path) -> None:
        self._crawler = crawler
        self._every = every
        self._file = path.open("w", newline="", encoding="utf-8", buffering=1)
        self._writer = csv.DictWriter(self._file, FIELDS, lineterminator="\n")
        self._writer.writeheader()
        self._start = self._last = time.perf_counter()
        self._cpu = time.process_time()
        self._due = every

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Take the number of pages and the path from the settings."""
        settings = crawler.settings
        sampler = cls(crawler, settings.getint("SAMPLE_EVERY"), Path(settings["SAMPLE_FILE"]))
        crawler.signals.connect(sampler.response_received, signal=signals.response_received)
        crawler.signals.connect(sampler.engine_stopped, signal=signals.engine_stopped)
        return sampler

    def response_received(self) -> None:
        """Write a line if one is due."""
        learner = self._crawler.get_extension(Learner)
        assert learner is not None
        if learner.crawl.pages < self._due:
            return
        now, cpu, figures = time.perf_counter(), time.process_time(), learner.crawl.figures()
        self._writer.writerow(
            {
                "pages": learner.crawl.pages,
                "seconds": round(now - self._start),
                "pages_per_second": round(self._every / (now - self._last), 1),
                "cpu_ms_per_page": round(1000 * (cpu - self._cpu) / self._every, 2),
                "megabytes": resident("self"),
                "judge_megabytes": max(map(resident, children())),
                "frontier": figures["frontier_size"],
                "samples": len(learner.crawl.store),
                "leaves": figures["leaves"],
                "harvest_rate": round(learner.crawl.harvest_rate, 4),
                "relevant_domains": figures["relevant_domains"],
            }
        )
        self._last, self._cpu = now, cpu
        self._due += self._every

    def engine_stopped(self) -> None:
        """Close the file."""
        self._file.close()


def resident(process: str) -> int:
    """Return the megabytes of memory of a process."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)


def children() -> list[str]:
    """Return the child processes: the judge and the web."""
    tasks = Path("/proc/self/task").glob("*/children")
    return [pid for task in tasks for pid in task.read_text(encoding="ascii").split()]


def plot(path: Path) -> None:
    """Plot a CSV file and save the plot beside it."""
    mpl.use("svg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - it wants to know its backend first

    with path.open(encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    panels = {
        "samples in the frontier": ["frontier"],
        "leaves": ["leaves"],
        "memory, MB": ["megabytes", "judge_megabytes"],
        "processor time of a page, ms": ["cpu_ms_per_page"],
        "pages/s": ["pages_per_second"],
        "harvest rate": ["harvest_rate"],
    }
    figure, axes = plt.subplots(3, 2, figsize=(10, 9), sharex=True, layout="constrained")
    for axis, (title, names) in zip(axes.flat, panels.items(), strict=True):
        for name in names:
            pages = [int(row["pages"]) for row in rows]
            axis.plot(pages, [float(row[name]) for row in rows], label=name.replace("_", " "))
        axis.set(title=title, ylim=(0, None))
        axis.grid(alpha=0.3)
        if len(names) > 1:
            axis.legend(frameon=False)
    for axis in axes[-1]:
        axis.set_xlabel("pages fetched")
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


def main() -> None:
    """Crawl, and draw what was written."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pages", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=1000, help="pages per line")
    parser.add_argument("--seed", type=int, default=1, help="random seed of the web")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--plot", action="store_true", help="only plot the existing CSV")
    options = parser.parse_args()
    path = options.output / "long_run.csv"
    if not options.plot:
        settings = get_project_settings()
        settings.setdict(
            {"TRES_WEB": "synthetic", "TRES_WEB_SEED": options.seed, "LOG_LEVEL": "ERROR"}
            | {"SAMPLE_EVERY": options.every, "SAMPLE_FILE": str(path)},
            priority="cmdline",
        )
        settings["EXTENSIONS"] = {**settings.getdict("EXTENSIONS"), "__main__.Sampler": 999}
        process = CrawlerProcess(settings)
        with TemporaryDirectory() as directory:
            output = str(Path(directory) / "items.jsonl")
            process.crawl("tres", topic="food", pages=str(options.pages), output=output)
            process.start()
    plot(path)


if __name__ == "__main__":
    main()
