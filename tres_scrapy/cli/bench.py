"""`tres bench`: compare policies on the same offline webs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tres_scrapy.cli.command import (
    INTERRUPTED,
    Command,
    Decorator,
    given_settings,
    option,
    project_settings,
    refuse,
)
from tres_scrapy.config.cap import Cap
from tres_scrapy.config.declaration import PREFIX
from tres_scrapy.config.extra import require
from tres_scrapy.config.parser import identifier, one_of, seeds, whole
from tres_scrapy.config.preset import set_scrapys
from tres_scrapy.crawl.registry import POLICIES
from tres_scrapy.lab.benchmark import RUNS, check_runs, run_grid
from tres_scrapy.lab.condition import TOPIC, Conditions
from tres_scrapy.lab.mean import VARIANTS
from tres_scrapy.lab.policies.inputs import with_graph
from tres_scrapy.lab.result import make_grid
from tres_scrapy.lab.webs.server import DATA, LABELS
from tres_scrapy.url.message import plainly

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tres_scrapy.lab.result import Run

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
  tres bench                               a first try, takes minutes
  tres bench --policies tres ache oracle --max none 10 --pages 5000
  tres bench --policies all --topics food sports hardware --max none 100 10 5 5_2
  tres bench --policies tres -s TRES_GAMMA=0.9 --output gamma/
  tres bench --http --policies tres random --seeds 1 --output http/
  tres bench --web corpus --data wiki.jsonl.xz --pages 400 --output wiki/
  tres bench --web recorded --data warcs/ --labels 'relevant-{topic}.txt' \\
      --starts @hubs.txt --topics course faculty --max none --pages 400 --output real/
"""

CORES: Final = os.cpu_count() or 1

Value = TypeVar("Value")


def _list(name: str, metavar: str, about: str) -> Decorator:
    """Return an option of the grid that takes several values."""
    return option(f"--{name}", metavar=f"{metavar}...", many=True, help=about, group="Grid")


@click.command(
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
    f"{', '.join(POLICIES)}, or {ALL} (default: all but {', '.join(VARIANTS)})",
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
    "--http",
    is_flag=True,
    help="run `scrapy crawl tres` over HTTP, 16 requests at a time unless -s sets it",
)
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

    Runs are done in parallel. The folder --output gets results.csv, plots, and results.md with
    tables as in the paper. All counts come from the web, not from the crawler. Finished runs are
    kept and not repeated: after Ctrl-C, repeat the command to continue. Commands with the same web,
    mode and settings can share one --output. Without --http, a run is simulated in one process and
    makes the same choices as a crawl with CONCURRENT_REQUESTS=1. Each -s TRES_NAME=VALUE applies to
    every run. Separate lists by spaces or commas. The exit status is 1 if a run failed.
    """
    if words:
        refuse("options only", words)
    runs: list[Run] = []
    try:
        require("bench", "the report")
        runs, processes = _grid(**given), _value("--jobs", jobs, whole(1))
        conditions = _conditions(given["web"], given["data"], given["labels"], given["http"])
        check_runs(conditions, runs)
        return run_grid(runs, processes, conditions, output)
    except KeyboardInterrupt:
        done = sum((output / RUNS / f"{run.name}.json").exists() for run in runs)
        said = f"interrupted, {done} of {len(runs)} runs are done; repeat the command to continue"
        print(f"tres bench: {said}", file=sys.stderr)
        return INTERRUPTED


def _grid(
    *,
    web: str,
    topics: Sequence[str],
    policies: Sequence[str],
    max: Sequence[str],  # noqa: A002 - the name of the option
    starts: Sequence[str],
    seeds: Sequence[str],
    pages: str,
    **_: Any,
) -> list[Run]:
    """Return the runs that the options ask for; raise ValueError if an option is not valid."""
    chosen = _each(policies)
    if not chosen or ALL in chosen:
        left_out = () if chosen else VARIANTS
        chosen = [name for name in POLICIES if name not in left_out and _fits(name, web)]
    caps = [_value("--max", text, Cap.parse) for text in _each(max or ["none", "10"])]
    numbers = seeds or (["1"] if starts else ["1", "2", "3"])
    return make_grid(
        _value("--web", web, one_of(*WEBS)),
        _value("--pages", pages, whole(1)),
        topics=[_value("--topics", text, identifier) for text in _each(topics or ["food"])],
        policies=[_value("--policies", text, one_of(*POLICIES)) for text in chosen],
        caps=["none" if cap is None else str(cap) for cap in caps],
        seeds=[_value("--seeds", text, whole(0, 2**31 - 1)) for text in _each(numbers)],
        starts=lambda topic: list(_starts(starts, topic)) or [""],
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
    return web != "synthetic" or POLICIES[policy].prepare is not with_graph


def _each(texts: Sequence[str]) -> list[str]:
    """Return the values of a list option, separated by spaces or commas."""
    return [part for text in texts for part in text.split(",")]


def _value(option: str, text: str, parse: Callable[[str], Value]) -> Value:
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{option} {text!r} {error}") from None


def _conditions(web: str, data: Path | None, labels: str, http: bool) -> Conditions:
    """Return the conditions of all runs; raise ValueError if options contradict each other."""
    if labels and web != "recorded":
        raise ValueError("--labels is for --web recorded; other webs know their labels")
    if (web in {"corpus", "recorded"}) != (data is not None):
        raise ValueError(
            "--web corpus and --web recorded need --data FILE; other webs do not take it"
        )
    given = given_settings()
    for name in given:
        if name in TAKEN:
            raise ValueError(f"-s {name} is not for a benchmark: use {TAKEN[name]}")
        if not http and not name.startswith(PREFIX) and name != "USER_AGENT":
            raise ValueError(f"-s {name} changes nothing without --http: remove it or add --http")
    settings = project_settings()
    names = {name for name in settings if str(name).startswith(PREFIX)} | given.keys()
    if http:
        set_scrapys(settings)
        names.add("CONCURRENT_REQUESTS")
    chosen = {name: str(settings[name]) for name in sorted(names)}
    return Conditions(web, data, http, chosen, settings["USER_AGENT"], labels)
