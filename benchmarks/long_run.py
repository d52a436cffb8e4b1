"""A long crawl of the synthetic web: memory, handles, speed, leaves and frontier over time.

    python benchmarks/long_run.py [--pages 100000] [--every 1000] [--faults SCHEDULE]
        [--output DIRECTORY]

Runs `scrapy crawl tres` over HTTP at full speed, 16 requests at a time, in a JOBDIR. With
`--faults`, the web injects faults, as in `tres web --faults`. Each line covers the pages since the
last line. DIRECTORY gets long_run.csv, line by line, and long_run.svg.
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
from kill import PATIENT, TOPIC, served
from scrapy import signals
from scrapy.crawler import Crawler, CrawlerProcess
from scrapy.utils.project import get_project_settings

from tres_scrapy.extensions.session import CrawlSession
from tres_scrapy.lab.webs.synthetic import SyntheticWeb

FIELDS = (
    "pages",
    "seconds",
    "pages_per_second",
    "cpu_ms_per_page",
    "megabytes",
    "judge_megabytes",
    "handles",
    "threads",
    "frontier",
    "samples",
    "leaves",
    "harvest_rate",
    "relevant_domains",
    "rests",
    "hosts_given_up",
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
        learner = self._crawler.get_extension(CrawlSession)
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
                "handles": len(os.listdir("/proc/self/fd")),
                "threads": len(os.listdir("/proc/self/task")),
                "frontier": figures["frontier_size"],
                "samples": len(learner.crawl.store),
                "leaves": figures["leaves"],
                "harvest_rate": round(learner.crawl.harvest_rate, 4),
                "relevant_domains": figures["relevant_domains"],
                "rests": learner.health.rests,
                "hosts_given_up": figures["hosts_given_up"],
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
        "handles and threads": ["handles", "threads"],
        "processor time of a page, ms": ["cpu_ms_per_page"],
        "pages/s": ["pages_per_second"],
        "harvest rate": ["harvest_rate"],
        "hosts that were put to rest": ["rests"],
    }
    figure, axes = plt.subplots(4, 2, figsize=(10, 12), sharex=True, layout="constrained")
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
    parser.add_argument("--faults", default="", help="a schedule, or `default`")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--plot", action="store_true", help="only plot the existing CSV")
    options = parser.parse_args()
    path = options.output / "long_run.csv"
    if not options.plot:
        with (
            TemporaryDirectory() as directory,
            served(options, Path(directory) / "log.jsonl") as port,
        ):
            os.environ["http_proxy"] = f"http://127.0.0.1:{port}"
            crawl(options, Path(directory), path)
    plot(path)


def crawl(options: argparse.Namespace, directory: Path, path: Path) -> None:
    """Crawl through the proxy, in a directory, and write the lines to a path."""
    settings = get_project_settings()
    rest = dict(each.split("=") for each in PATIENT)
    settings.setdict(
        {f"TRES_{name}": value for name, value in rest.items()}
        | {"SAMPLE_EVERY": options.every, "SAMPLE_FILE": str(path), "LOG_LEVEL": "ERROR"}
        | {"DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 16}
        | {"JOBDIR": str(directory / "job")},
        priority="cmdline",
    )
    settings["EXTENSIONS"] = {**settings.getdict("EXTENSIONS"), "__main__.Sampler": 999}
    process = CrawlerProcess(settings)
    process.crawl(
        "tres",
        topic=TOPIC,
        seed=",".join(SyntheticWeb(TOPIC, seed=options.seed).seeds),
        pages=str(options.pages),
        output=str(directory / "items.jsonl"),
    )
    process.start()


if __name__ == "__main__":
    main()
