"""TRES beside real programs, on one served web of real pages, all requests counted at its proxy.

    python benchmarks/peers.py --data FOLDER --words FOLDER --scratch FOLDER [--models FOLDER]
        [--programs NAME...] [--topics NAME...] [--requests 1000] [--runs 1] [--seconds 900]
        [--note TEXT]

--data holds sites.warc.gz and sites-TOPIC.txt, and university.jsonl.xz to train the pack `course`
on, which takes two minutes; --words holds TOPIC.txt, ten words a topic. Every program starts at the
directory of the sites and is stopped after --requests requests. A page counts as relevant by the
labels of the web, at the proxy, once. Requests for robots.txt are counted apart.

crawl4ai and bytecrawl are installed with pip into environments in --scratch. Each run adds a line
to results.jsonl there. Finished runs are not repeated, unless the version of the program has
changed, so the same command continues after Ctrl-C. docs/peers.md and docs/peers.svg show the
newest result of each run. `--programs none` only writes them again.

Processor time is that of all processes of a program, without the web's. Times depend on what else
the machine does; relevant pages hardly do. --note is a sentence about that for the page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from peering.count import Tally
from peering.measure import CrawlError, measure
from peering.page import write_page
from peering.program import PROGRAMS, Job, Package, Program
from real_webs import ROOT, train

TOPICS: Final = ("food", "sports", "hardware", "course")
IDENTITY: Final = ("program", "topic", "run", "limit", "version")


def jobs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[Program, Job]]:
    """Yield what is to be run: all programs on all topics, then the next run."""
    for number in range(1, options.runs + 1):
        for topic in options.topics:
            for program in PROGRAMS:
                if program.name in options.programs:
                    yield (
                        program,
                        Job(
                            topic=topic,
                            number=number,
                            limit=options.requests,
                            data=options.data / "sites.warc.gz",
                            labels=options.data / f"sites-{topic}.txt",
                            words=options.words / f"{topic}.txt",
                            models=options.models,
                            environments=options.scratch / "environments",
                            folder=folder,
                        ),
                    )


def reporter(program: Program, job: Job) -> Callable[[Tally], None]:
    """Return a function that prints a line every hundred requests."""
    shown = 0

    def report(tally: Tally) -> None:
        nonlocal shown
        if tally.requests // 100 > shown:
            shown = tally.requests // 100
            found = f"{tally.requests} requests, {len(tally.found)} relevant"
            print(f"{program.name}, {job.topic}, run {job.number}: {found}", flush=True)

    return report


def read_results(file: Path) -> list[dict[str, Any]]:
    """Return the rows of the finished runs, none if there is no file."""
    return list(map(json.loads, file.read_text("utf-8").splitlines())) if file.exists() else []


def run_missing(options: argparse.Namespace, results: Path) -> int:
    """Do the runs that are not in the file of results, and return how many failed."""
    failed = 0
    with TemporaryDirectory(prefix="peers-") as place:
        for number, (program, job) in enumerate(jobs(options, Path(place))):
            version = program.version(job)
            identity = (program.name, job.topic, job.number, job.limit, version)
            done = read_results(results)  # each time: another command may add to it
            if identity in {tuple(row[name] for name in IDENTITY) for row in done}:
                continue
            folder = Path(place, str(number))
            folder.mkdir()
            if isinstance(program, Package):
                program.install(job.environments)
            try:
                counts = measure(
                    program, replace(job, folder=folder), options.seconds, reporter(program, job)
                )
            except CrawlError as error:
                failed += 1
                print(error, file=sys.stderr, flush=True)
                continue
            row = dict(zip(IDENTITY, identity, strict=True)) | counts
            row["date"] = datetime.now(UTC).date().isoformat()
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(
                f"{program.name}, {job.topic}, run {job.number}: {len(counts['found'])} relevant "
                f"in {counts['requests']} requests, {counts['processor']:.0f} s of processor time, "
                f"{counts['wall']:.0f} s, {counts['ended']}",
                flush=True,
            )
    return failed


def main() -> None:
    """Run the missing crawls and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--words", type=Path, required=True)
    parser.add_argument("--scratch", type=Path, required=True)
    parser.add_argument("--models", type=Path)
    names = [program.name for program in PROGRAMS]
    parser.add_argument("--programs", nargs="+", choices=[*names, "none"], default=names)
    parser.add_argument("--topics", nargs="+", choices=TOPICS, default=TOPICS)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    for name in ("data", "words", "scratch"):
        setattr(options, name, getattr(options, name).resolve())
    options.models = (options.models or options.scratch / "models").resolve()
    options.models.mkdir(parents=True, exist_ok=True)
    train(["course"], options.data, options.scratch, options.models)
    results = options.scratch / "results.jsonl"
    failed = run_missing(options, results)
    command = "python benchmarks/peers.py --data DATA --words WORDS --scratch SCRATCH"
    command += f" --requests {options.requests} --runs {options.runs}"
    write_page(ROOT / "docs", read_results(results), command, options.note)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
