# ruff: noqa: N999 - Scrapy names a command after its module
"""`scrapy tres-bench`: compare policies on the same offline webs."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import closing
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Final, TypeVar

from scrapy.commands import ScrapyCommand, ScrapyHelpFormatter
from scrapy.exceptions import UsageError
from scrapy.utils.conf import arglist_to_dict

from tres_scrapy.commands.calling import called, named
from tres_scrapy.config.declaration import PREFIX
from tres_scrapy.config.extra import require
from tres_scrapy.config.limit import Cap
from tres_scrapy.config.parser import identifier, one_of, seeds, whole
from tres_scrapy.config.preset import set_scrapys
from tres_scrapy.crawl.assembly import require_pack
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.condition import TOPIC, Conditions
from tres_scrapy.lab.display import Display
from tres_scrapy.lab.grid import make_grid, read_results
from tres_scrapy.lab.mean import VARIANTS
from tres_scrapy.lab.version import code_version
from tres_scrapy.lab.webs.server import DATA, LABELS, open_web
from tres_scrapy.lab.worker import Advance, RunFailure, work
from tres_scrapy.url.message import plainly, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from scrapy.settings import Settings

    from tres_scrapy.lab.result import Run

INTERRUPTED: Final = 130
RUNS: Final = "runs"  # the folder of results in --output
ALL: Final = "all"
WEBS: Final = ("synthetic", "corpus", "recorded")  # webs that can be crawled without search forms
TAKEN: Final = {  # settings that differ between the runs, and the option that lists their values
    "TRES_WEB": "--web",
    "TRES_WEB_DATA": "--data",
    "TRES_WEB_LABELS": "--labels",
    "TRES_WEB_SEED": "--seeds",
    "TRES_RANDOM_SEED": "--seeds",
    "TRES_SEED": "--starts",
    "TRES_TOPIC": "--topics",
    "TRES_POLICY": "--policies",
    "TRES_MAX_PER_DOMAIN": "--max",
    "TRES_PAGES": "--pages",
    "TRES_WEB_LOG": "--output",
    "TRES_OUTPUT": "--output",
}
EXAMPLES: Final = """\
Examples:
  scrapy tres-bench                               a first try, takes minutes
  scrapy tres-bench --policies tres ache oracle --max none 10 --pages 5000
  scrapy tres-bench --policies all --topics food sports hardware --max none 100 10 5 5_2
  scrapy tres-bench --policies tres -s TRES_GAMMA=0.9 --output gamma/
  scrapy tres-bench --http --policies tres random --seeds 1 --output http/
  scrapy tres-bench --web corpus --data wiki.jsonl.xz --pages 400 --output wiki/
  scrapy tres-bench --web recorded --data warcs/ --labels 'relevant-{topic}.txt' \\
      --starts @hubs.txt --topics course faculty --max none --pages 400 --output real/
"""

Value = TypeVar("Value")


class Command(ScrapyCommand):
    """Run one crawl for each policy, MAX, topic and seed, and write the results."""

    requires_crawler_process = False

    def syntax(self) -> str:
        return "[--policies NAME...] [--topics NAME...] [--max MAX...] [--seeds N...] [options]"

    def short_desc(self) -> str:
        return "Compare crawlers: run every policy on the same webs"

    def long_desc(self) -> str:
        return fill(
            "Crawl an offline web once for each policy, MAX (most pages per domain), topic, start "
            "and seed. Runs are done in parallel. The folder --output gets results.csv, plots, and "
            "results.md with tables as in the paper. All counts come from the web, not from the "
            "crawler. Finished runs are kept and not repeated: after Ctrl-C, repeat the command to "
            "continue. Commands with the same web, mode and settings can share one --output. "
            "Without --http, a run is simulated in one process and makes the same choices as a "
            "crawl with CONCURRENT_REQUESTS=1. Each -s TRES_NAME=VALUE applies to every run. "
            "Separate lists by spaces or commas. The exit status is 1 if a run failed."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.formatter_class = _HelpFormatter
        parser.epilog = EXAMPLES
        grid = parser.add_argument_group("grid")
        web = f"{' or '.join(WEBS)} (default: %(default)s)"
        grid.add_argument("--web", metavar="WEB", default=WEBS[0], help=web)
        grid.add_argument("--data", metavar="FILE", type=Path, help=DATA)
        labels = f"{LABELS}; {TOPIC} in its name stands for the topic"
        grid.add_argument("--labels", metavar="FILE", default="", help=labels)
        topics = "names of topic packs (default: food)"
        grid.add_argument("--topics", metavar="NAME", nargs="+", default=["food"], help=topics)
        policies = f"{', '.join(POLICIES)}, or {ALL} (default: all but {', '.join(VARIANTS)})"
        grid.add_argument("--policies", metavar="NAME", nargs="+", default=[], help=policies)
        caps = "most pages per domain: none, a number, or two like 5_2 (default: none 10)"
        grid.add_argument("--max", metavar="MAX", nargs="+", default=["none", "10"], help=caps)
        starts = (
            "URL to start from, or URLs with commas between; or @FILE with one start per line, "
            f"{TOPIC} in its name stands for the topic (default: one start, which the web chooses)"
        )
        grid.add_argument("--starts", metavar="START", nargs="+", default=[], help=starts)
        seeds = (
            "random seeds of the synthetic web and the crawler (default: 1 2 3, with --starts 1)"
        )
        grid.add_argument("--seeds", metavar="N", nargs="+", help=seeds)
        grid.add_argument(
            "--pages", metavar="N", default="1000", help="pages per run (default: %(default)s)"
        )
        http = "run `scrapy crawl tres` over HTTP, 16 requests at a time unless -s sets it"
        parser.add_argument("--http", action="store_true", help=http)
        jobs = "parallel processes (default: number of cores, %(default)s)"
        parser.add_argument("--jobs", metavar="N", default=str(os.cpu_count() or 1), help=jobs)
        output = "folder for the results (default: %(default)s)"
        parser.add_argument(
            "--output", metavar="DIR", type=Path, default=Path("bench"), help=output
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise UsageError(f"give options only, not {named(args)}")
        assert self.settings is not None
        runs: list[Run] = []
        try:
            require("bench", "the report")
            runs, jobs = _grid(opts), _value("--jobs", opts.jobs, whole(1))
            conditions = _conditions(opts, self.settings)
            _check(conditions, runs)
            self.exitcode = _bench(runs, jobs, conditions, opts.output)
        except (OSError, ValueError) as error:
            sys.exit(f"scrapy tres-bench: {plainly(error)}")
        except KeyboardInterrupt:
            done = sum((opts.output / RUNS / f"{run.name}.json").exists() for run in runs)
            said = (
                f"interrupted, {done} of {len(runs)} runs are done; repeat the command to continue"
            )
            print(f"{called('bench')}: {said}", file=sys.stderr)
            self.exitcode = INTERRUPTED


class _HelpFormatter(argparse.RawDescriptionHelpFormatter, ScrapyHelpFormatter):
    """Keep line breaks in the description and the examples."""


def _grid(opts: argparse.Namespace) -> list[Run]:
    """Return the runs that the options ask for; raise ValueError if an option is not valid."""
    policies = _each(opts.policies)
    if not policies or ALL in policies:
        left_out = () if policies else VARIANTS
        policies = [name for name in POLICIES if name not in left_out and _fits(name, opts.web)]
    caps = [_value("--max", text, Cap.parse) for text in _each(opts.max)]
    numbers = opts.seeds or (["1"] if opts.starts else ["1", "2", "3"])
    return make_grid(
        _value("--web", opts.web, one_of(*WEBS)),
        _value("--pages", opts.pages, whole(1)),
        topics=[_value("--topics", text, identifier) for text in _each(opts.topics)],
        policies=[_value("--policies", text, one_of(*POLICIES)) for text in policies],
        caps=["none" if cap is None else str(cap) for cap in caps],
        seeds=[_value("--seeds", text, whole(0, 2**31 - 1)) for text in _each(numbers)],
        starts=lambda topic: list(_starts(opts.starts, topic)) or [""],
    )


def _starts(options: Sequence[str], topic: str) -> Iterator[str]:
    """Yield the starts of a topic, each its URLs with commas between; raise ValueError if wrong."""
    for text in options:
        name = text.replace(TOPIC, topic)
        lines = [text]
        if text.startswith("@"):
            lines = _value("--starts", name, lambda name: _lines(Path(name[1:])))
        for line in lines:
            yield ",".join(_value("--starts", line, seeds))


def _lines(path: Path) -> list[str]:
    """Return the lines of a file; raise ValueError if it is empty or cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"cannot be read: {plainly(error)}") from None
    found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if not found:
        raise ValueError("must hold at least one start")
    return found


def _fits(policy: str, web: str) -> bool:
    """Return whether a policy can crawl a web: the synthetic web has no graph that is known."""
    return web != "synthetic" or POLICIES[policy].needs != "graph"


def _each(texts: Sequence[str]) -> list[str]:
    """Return the values of a list option, separated by spaces or commas."""
    return [part for text in texts for part in text.split(",")]


def _value(option: str, text: str, parse: Callable[[str], Value]) -> Value:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{option} {text!r} {error}") from None


def _conditions(opts: argparse.Namespace, settings: Settings) -> Conditions:
    """Return the conditions of all runs; raise ValueError if options contradict each other."""
    if opts.labels and opts.web != "recorded":
        raise ValueError("--labels is for --web recorded; other webs know their labels")
    if (opts.web in {"corpus", "recorded"}) != (opts.data is not None):
        raise ValueError(
            "--web corpus and --web recorded need --data FILE; other webs do not take it"
        )
    given = arglist_to_dict(opts.set)
    for name in given:
        if name in TAKEN:
            raise ValueError(f"-s {name} is not for a benchmark: use {TAKEN[name]}")
        if not opts.http and not name.startswith(PREFIX) and name != "USER_AGENT":
            raise ValueError(f"-s {name} changes nothing without --http: remove it or add --http")
    names = {name for name in settings if str(name).startswith(PREFIX)} | given.keys()
    if opts.http:
        set_scrapys(settings)
        names.add("CONCURRENT_REQUESTS")
    chosen = {name: str(settings[name]) for name in sorted(names)}
    return Conditions(
        *(opts.web, opts.data, opts.http, chosen, settings["USER_AGENT"]), labels=opts.labels
    )


def _check(conditions: Conditions, runs: Sequence[Run]) -> None:
    """Print the notes of the web; raise ValueError or OSError if a run cannot start."""
    for run in runs:
        require_pack(conditions.config(run))
    notes = dict[str, None]()
    for topic, run in {run.topic: run for run in runs}.items():
        labels = conditions.config(run).web.labels
        if labels is not None and not labels.is_file():
            raise ValueError(f"--labels {conditions.labels!r}: there is no file {str(labels)!r}")
        web = open_web(conditions.web, topic, run.seed, conditions.data, labels)
        notes |= dict.fromkeys(web.notes)
        starts = {url for run in runs if run.topic == topic for url in conditions.config(run).seed}
        for url in sorted(starts):
            if (status := web.answer(url).status) >= 400:
                raise ValueError(f"--starts {url!r} is not on this web: it answers {status}")
    for note in notes:
        print(f"{called('bench')}: {note}", file=sys.stderr)


def _bench(runs: Sequence[Run], jobs: int, conditions: Conditions, output: Path) -> int:
    """Do the missing runs, write the report, and return the exit status.

    After an interrupt, the report shows the finished runs.
    """
    directory = output / RUNS
    directory.mkdir(parents=True, exist_ok=True)
    results, faults = read_results(directory)
    conditions.note(output, runs, is_new=not results)
    for fault in faults:
        print(f"{called('bench')}: {fault}; the run will be repeated", file=sys.stderr)
    done = {result.run: result.code for result in results}
    left = [run for run in runs if run not in done]
    if len(left) < len(runs):
        print(f"{len(runs) - len(left)} of {len(runs)} runs are done already", flush=True)
    if other := sum(done.get(run) not in {code_version(), None} for run in runs):
        said = f"{other} of them by other code; delete their files in {directory} to repeat them"
        print(f"{called('bench')}: {said}", file=sys.stderr)
    try:
        failures = _work(left, jobs, conditions, directory) if left else 0
    finally:
        _report(output, conditions)
    return int(failures > 0)


def _report(output: Path, conditions: Conditions) -> None:
    """Write the report of all results in the folder, from other commands too."""
    # importing matplotlib takes a second
    from tres_scrapy.lab.comparison import write_report  # noqa: PLC0415

    results, _ = read_results(output / RUNS)
    if not results:
        return
    try:
        page = write_report(output, results, str(conditions))
    except OSError as error:
        raise ValueError(f"the report in {output} cannot be written: {plainly(error)}") from None
    print(f"{len(results)} {plural(len(results), 'run')}, see {page}", flush=True)


def _work(runs: Sequence[Run], jobs: int, conditions: Conditions, directory: Path) -> int:
    """Do the runs, show the progress, and return how many failed."""
    failures = 0
    with Display(runs) as display, closing(work(runs, jobs, conditions, directory)) as events:
        for event in events:
            if isinstance(event, Advance):
                display.advance(*event)
            elif isinstance(event, RunFailure):
                trace = _trace(directory, event.run)
                trace.write_text(event.trace, encoding="utf-8")
                display.fail(event, trace)
                failures += 1
            else:
                _trace(directory, event.run).unlink(missing_ok=True)  # of an earlier try
                display.finish(event)
    return failures


def _trace(directory: Path, run: Run) -> Path:
    return directory / f"{run.name}.error"
