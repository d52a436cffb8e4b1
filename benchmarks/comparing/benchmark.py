"""One benchmark: the missing runs of a grid are done, and a report shows all results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from tqdm import tqdm

from comparing.comparison import write_report
from comparing.condition import Conditions
from comparing.result import Result, Run, code_version, read_results
from comparing.worker import Advance, RunFailure, work
from tres_scrapy.crawl.assembly import require_pack
from tres_scrapy.lab.webs.server import open_web
from tres_scrapy.url.message import TresError, plainly, plural

RUNS: Final = "runs"  # the folder of results
NAME: Final = "compare"


def check_runs(conditions: Conditions, runs: Sequence[Run]) -> None:
    """Print the notes of the web; raise TresError or OSError if a run cannot start."""
    for run in runs:
        require_pack(conditions.config(run))
    notes = dict[str, None]()
    for topic, run in {run.topic: run for run in runs}.items():
        labels = conditions.config(run).web.labels
        if labels is not None and not labels.is_file():
            raise TresError(f"--labels {conditions.labels!r}: there is no file {str(labels)!r}")
        web = open_web(conditions.web, topic, run.seed, conditions.data, labels)
        notes |= dict.fromkeys(web.notes)
        starts = {url for run in runs if run.topic == topic for url in conditions.config(run).seed}
        for url in sorted(starts):
            if (status := web.answer(url).status) >= 400:
                raise TresError(f"--starts {url!r} is not on this web: it answers {status}")
    for note in notes:
        print(f"{NAME}: {note}", file=sys.stderr)


def run_grid(runs: Sequence[Run], jobs: int, conditions: Conditions, output: Path) -> int:
    """Do the missing runs, write the report, and return the exit status.

    After an interrupt, the report shows the finished runs.
    """
    directory = output / RUNS
    directory.mkdir(parents=True, exist_ok=True)
    results, faults = read_results(directory)
    conditions.note(output, runs, is_new=not results)
    for fault in faults:
        print(f"{NAME}: {fault}; the run will be repeated", file=sys.stderr)
    done = {result.run: result.code for result in results}
    left = [run for run in runs if run not in done]
    if len(left) < len(runs):
        print(f"{len(runs) - len(left)} of {len(runs)} runs are done already", flush=True)
    if other := sum(done.get(run) not in {code_version(), None} for run in runs):
        said = f"{other} of them by other code; delete their files in {directory} to repeat them"
        print(f"{NAME}: {said}", file=sys.stderr)
    try:
        failures = _work(left, jobs, conditions, directory) if left else 0
    finally:
        _report(output, conditions)
    return int(failures > 0)


def _report(output: Path, conditions: Conditions) -> None:
    """Write the report of all results in the folder, from other commands too."""
    results, _ = read_results(output / RUNS)
    if not results:
        return
    try:
        page = write_report(output, results, str(conditions))
    except OSError as error:
        raise TresError(f"the report in {output} cannot be written: {plainly(error)}") from None
    print(f"{len(results)} {plural(len(results), 'run')}, see {page}", flush=True)


def _work(runs: Sequence[Run], jobs: int, conditions: Conditions, directory: Path) -> int:
    """Do the runs, show pages and results, and return how many runs failed."""
    failures, ended = 0, 0
    left = {run: run.pages for run in runs}
    bar = tqdm(
        total=sum(left.values()),
        unit=" pages",
        smoothing=0.05,  # average the rate over minutes, not over the last second
        dynamic_ncols=True,
        disable=not sys.stderr.isatty(),
    )
    with bar, closing(work(runs, jobs, conditions.open, directory)) as events:
        for event in events:
            if isinstance(event, Advance):
                left[event.run] -= event.pages
                bar.update(event.pages)
                continue
            run = event.run
            trace = directory / f"{run.name}.error"
            ended += 1
            bar.update(left[run])  # the pages that a run did not fetch count as done
            bar.set_description(f"{ended} of {len(runs)} runs")
            if isinstance(event, RunFailure):
                failures += 1
                trace.write_text(event.trace, encoding="utf-8")
                bar.write(f"{run.name} failed: {event.reason} (see {trace})", file=sys.stderr)
            else:
                trace.unlink(missing_ok=True)  # of an earlier try
                bar.write(_line(event))
    return failures


def _line(result: Result) -> str:
    run, ran_out = result.run, ", links ran out" if result.exhausted else ""
    start = f" from {run.start}" if run.start else ""
    return (
        f"{run.policy:13} MAX {run.cap:5} {run.topic:9} seed {run.seed}{start}: harvest "
        f"{100 * result.harvest:5.1f} %, {result.domains} {plural(result.domains, 'domain')}, "
        f"{result.pages} {plural(result.pages, 'page')}{ran_out}, "
        f"{result.seconds:.0f} s"
    )
