"""Compare policies on the same offline webs: `python benchmarks/compare.py --help`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from comparing.benchmark import RUNS, check_runs, run_grid
from comparing.condition import TOPIC, Conditions
from comparing.grid import ALL, WEBS, grid_of, value_of

from tres_scrapy.cli.command import (
    INTERRUPTED,
    Command,
    Decorator,
    given_settings,
    option,
    project_settings,
    refuse,
    run_line,
)
from tres_scrapy.config.declaration import PREFIX
from tres_scrapy.config.parser import whole
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.webs.server import DATA, LABELS
from tres_scrapy.url.message import TresError

if TYPE_CHECKING:
    from comparing.result import Run

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
  python benchmarks/compare.py                       a first try, takes minutes
  python benchmarks/compare.py --policies tres best_first oracle --max none 10 --pages 5000
  python benchmarks/compare.py --policies all --topics food sports hardware --max none 100 10 5 5_2
  python benchmarks/compare.py --policies tres -s TRES_GAMMA=0.9 --output gamma/
  python benchmarks/compare.py --web corpus --data wiki.jsonl.xz --pages 400 --output wiki/
  python benchmarks/compare.py --web recorded --data warcs/ --labels 'relevant-{topic}.txt' \\
      --starts @hubs.txt --topics course faculty --max none --pages 400 --output real/
"""

CORES: Final = os.cpu_count() or 1


def _list(name: str, metavar: str, about: str) -> Decorator:
    """Return an option of the grid that takes several values."""
    return option(f"--{name}", metavar=f"{metavar}...", many=True, help=about, group="Grid")


@click.command(
    "compare",
    cls=Command,
    syntax="[--policies NAME...] [--topics NAME...] [--max MAX...] [--seeds N...] [options]",
    epilog=EXAMPLES,
)
@click.argument("words", nargs=-1)
@option(
    "--web",
    metavar="WEB",
    default=WEBS[0],
    help=f"{' or '.join(WEBS)} (default: {WEBS[0]})",
    group="Grid",
)
@option("--data", metavar="FILE", type=Path, help=DATA, group="Grid")
@option(
    "--labels",
    metavar="FILE",
    default="",
    help=f"{LABELS}; {TOPIC} in its name stands for the topic",
    group="Grid",
)
@_list("topics", "NAME", "names of topic packs (default: food)")
@_list(
    "policies",
    "NAME",
    f"{', '.join(POLICIES)}, {ALL} of these (the default), or MODULE:NAME of another",
)
@_list("max", "MAX", "most pages per domain: none, a number, or two like 5_2 (default: none 10)")
@_list(
    "starts",
    "START",
    "URL to start from, or URLs with commas between; or @FILE with one start per line, "
    f"{TOPIC} in its name stands for the topic (default: one start, which the web chooses)",
)
@_list(
    "seeds",
    "N",
    "random seeds of the synthetic web and the crawler (default: 1 2 3, with --starts 1)",
)
@option("--pages", metavar="N", default="1000", help="pages per run (default: 1000)", group="Grid")
@option(
    "--jobs",
    metavar="N",
    default=str(CORES),
    help=f"parallel processes (default: number of cores, {CORES})",
)
@option(
    "--output",
    metavar="DIR",
    type=Path,
    default=Path("bench"),
    help="folder for the results (default: bench)",
)
def command(words: tuple[str, ...], jobs: str, output: Path, **given: Any) -> int:
    """Crawl an offline web for each policy, MAX (most pages per domain), topic, start and seed.

    Runs are done in parallel. The folder --output gets results.csv, and results.md with tables as
    in the paper. All counts come from the web, not from the crawler. Finished runs are kept and not
    repeated: after Ctrl-C, repeat the command to continue. Commands with the same web and settings
    can share one --output. A run is simulated in one process and makes the same choices as a crawl
    with CONCURRENT_REQUESTS=1. Each -s TRES_NAME=VALUE applies to every run. Separate lists by
    spaces or commas. The exit status is 1 if a run failed.
    """
    if words:
        refuse("options only", words)
    runs: list[Run] = []
    try:
        runs, processes = grid_of(**given), value_of("--jobs", jobs, whole(1))
        conditions = _conditions(given["web"], given["data"], given["labels"])
        check_runs(conditions, runs)
        return run_grid(runs, processes, conditions, output)
    except KeyboardInterrupt:
        done = sum((output / RUNS / f"{run.name}.json").exists() for run in runs)
        said = f"interrupted, {done} of {len(runs)} runs are done; repeat the command to continue"
        print(f"compare: {said}", file=sys.stderr)
        return INTERRUPTED


def _conditions(web: str, data: Path | None, labels: str) -> Conditions:
    """Return the conditions of all runs; raise TresError if options contradict each other."""
    if labels and web != "recorded":
        raise TresError("--labels is for --web recorded; other webs know their labels")
    if (web in {"corpus", "recorded"}) != (data is not None):
        raise TresError(
            "--web corpus and --web recorded need --data FILE; other webs do not take it"
        )
    given = given_settings()
    for name in given:
        if name in TAKEN:
            raise TresError(f"-s {name} is not for a benchmark: use {TAKEN[name]}")
        if not name.startswith(PREFIX) and name != "USER_AGENT":
            raise TresError(f"-s {name} changes nothing in one process: remove it")
    settings = project_settings()
    names = {name for name in settings if str(name).startswith(PREFIX)} | given.keys()
    chosen = {name: str(settings[name]) for name in sorted(names)}
    return Conditions(web, data, chosen, settings["USER_AGENT"], labels)


if __name__ == "__main__":
    run_line(*sys.argv[1:], script=command)
