"""Prepares a crawl on many machines from the options of a crawl, runs it and joins its output."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from heapq import merge
from pathlib import Path
from typing import Any, Final

from tres_scrapy.cluster.actor import when_free
from tres_scrapy.cluster.driver import Driver, has_failed, require_cluster
from tres_scrapy.cluster.plan import OUTPUT, Plan, local_folder
from tres_scrapy.cluster.register import Register
from tres_scrapy.cluster.snapshot import SnapshotFolder, begin_run
from tres_scrapy.cluster.take_over import gather
from tres_scrapy.cluster.view import ClusterView
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.parser import budgets
from tres_scrapy.config.typed import typed
from tres_scrapy.config.visit import site_rules
from tres_scrapy.crawl.assembly import learning_setup, require_packs
from tres_scrapy.downloader.contact import check_contact, named_agent
from tres_scrapy.downloader.identity import Identity
from tres_scrapy.extensions.ending import SHUTDOWN
from tres_scrapy.extensions.offline_web import FIGURES, in_words, start_web
from tres_scrapy.run.identity import identity_of, now
from tres_scrapy.run.job_file import CLUSTER
from tres_scrapy.run.run_file import NAME
from tres_scrapy.settings import USER_AGENT
from tres_scrapy.topic.pack import load_packs
from tres_scrapy.url.message import counted, plainly, plural

# arguments that are about the whole crawl, not for its shards
WHOLE: Final = ("metrics_file", "metrics_host", "metrics_port", "output")

logger = logging.getLogger(__name__)


def crawl(plan: Plan, address: str | None = None) -> int:
    """Crawl as the user asks, on the Ray cluster at an address; return the exit status.

    The folder of the job may have environment variables in its path, which each node replaces by
    its own. Raise TresError at the start.
    """
    if address:
        require_cluster(address)
    template = _template(plan.job)
    job = local_folder(template) if plan.snapshots else plan.job.resolve()
    plan = replace(plan, job=job, template=template, run=now())
    config = _config_of(plan)
    setup = learning_setup(config, load_packs(require_packs(config), lazily=True))
    plan = replace(plan, pages=config.pages, identity=identity_of(config) | {"shard": ""})
    place = plan.job, plan.shards, plan.identity
    when_free(partial(Register, *place, snapshots=plan.snapshots)).close()
    if plan.snapshots:
        begin_run(plan.snapshots, {**plan.identity, "shards": str(plan.shards)}, plan.run)
    with _web(config) as web:
        plan = replace(plan, arguments=_arguments(plan, web))
        output = config.output.file or plan.job / f"{config.topic}.jsonl"
        view = ClusterView(config, plan, output)
        driver = Driver(plan, setup, address, view.show)
        facts = dict[str, str]()
        with view.of(driver, facts):
            last = driver.run()
            view.progress.close(last)
            state = last.state
            if last.finish == SHUTDOWN:
                done = counted(state.pages, "page")
                logger.info("Stopped after %s: the same command resumes it", done)
            if state.pages and plan.shards > 1:
                sent = state.sum("bytes_sent") / state.pages / 1000
                logger.info("Sent between the processes: %.1f kB a page", sent)
            if web is not None and web.labelled:
                facts["labels"] = json.dumps(_truth(web.end(), state.pages))
            view.is_whole = bool(plan.snapshots) and _gather(plan)
            count = join_parts((plan.folder(n) / OUTPUT for n in range(plan.shards)), output)
            logger.info("Wrote %d %s to %s", count, plural(count, "relevant page"), output)
    return int(has_failed(last) or (bool(plan.snapshots) and not view.is_whole))


def _template(job: Path) -> str:
    """Return the folder of a crawl on any node, with its environment variables."""
    return str(job if str(job).startswith("$") else Path.cwd() / job)


def _gather(plan: Plan) -> bool:
    """Bring the files of all shards to this node; return whether none is missing."""
    is_whole = True
    for number in range(plan.shards):
        try:
            folder = plan.folder(number)
            found = gather(folder, SnapshotFolder(f"{plan.snapshots}/{folder.name}"), plan.run)
        except Exception as error:  # libraries of storages raise many kinds
            found = False
            logger.error("%s", plainly(error))
        if not found:
            logger.error("The last pages of shard %d are missing: run the same line again", number)
        is_whole &= found
    return is_whole


def _check(config: Config) -> None:
    """Raise ConfigError if several shards cannot crawl so."""
    cap = config.max_per_domain
    if config.policy != "tres" or not config.links.enabled:
        raise ConfigError(
            f"a crawl in shards needs {typed('policy', 'tres')} and {typed('link_model', True)}"
        )
    if config.stop is not None:
        raise ConfigError(f"{typed('stop', config.stop)}: a crawl in shards has no such rule")
    if cap is not None and cap.first != cap.last:
        raise ConfigError(
            f"{typed('max_per_domain', cap)}: a crawl in shards needs one number, or none"
        )
    if config.words.file is not None:
        raise ConfigError(
            f"{typed('keywords')} learns a topic in one process: give a pack ({typed('topic')})"
        )
    for name in ("answers", "answerer"):
        if getattr(config.words, name) is not None:
            raise ConfigError(f"{typed(name)}: a crawl in shards cannot be answered")


def _config_of(plan: Plan) -> Config:
    """Return the options; raise ConfigError if shards cannot crawl so."""
    given = {f"TRES_{name.upper()}": value for name, value in plan.arguments.items()}
    number = {"TRES_SHARD": "0", "TRES_SHARDS": str(plan.shards)}
    config = Config.from_settings({**plan.settings, **given, **number})
    if plan.shards > 1:
        _check(config)
    config.require_seed()
    config.require_packages()
    if config.download.identity is not None:
        Identity.read(config.download.identity)  # as each shard does, but its log is elsewhere
    agent = named_agent(plan.settings.get("USER_AGENT", USER_AGENT), config.download.contact)
    check_contact(agent, config, config.seed)
    if (plan.job / NAME).exists() and not (plan.job / CLUSTER).exists():
        raise ConfigError(
            f"--job {str(plan.job)!r} is the JOBDIR of a crawl without shards: give another folder"
        )
    if plan.job.exists() and not plan.job.is_dir():
        raise ConfigError(f"--job {str(plan.job)!r} is a file: give a folder")
    return config


@contextmanager
def _web(config: Config) -> Iterator[Any]:
    """Serve the offline web of a crawl, if it has one."""
    if config.web.kind is None or config.web.proxy is not None:
        yield None
        return
    yield start_web(config.web, config.topics)  # it ends with this process


def _arguments(plan: Plan, web: Any) -> dict[str, str]:
    """Return the arguments of the shards, which run in other folders and in an offline web."""
    arguments = dict(plan.arguments)
    if web is not None:
        arguments["web_proxy"] = web.proxy
        arguments.setdefault("seed", ",".join(web.seeds))
    for name in WHOLE:
        arguments.pop(name, None)
    return {name: _absolute(name, value) for name, value in arguments.items()}


def _absolute(name: str, value: str) -> str:
    """Return the value of an argument with the whole path of a file: shards run elsewhere."""
    known = Config.declared()[f"TRES_{name.upper()}"]
    if value.startswith("@"):
        return f"@{Path(value[1:]).resolve()}"
    return str(Path(value).resolve()) if known.parse in {Path, budgets, site_rules} else value


def _truth(count: dict[str, Any], pages: int) -> dict[str, Any]:
    """Log what the web counted by its true labels, and return it for the record."""
    if count["pages"]:
        logger.info(in_words(count, pages))
    return {name: count[name] for name in FIGURES}


def join_parts(parts: Iterable[Path], output: Path) -> int:
    """Write the lines of all parts to a file, sorted by `fetched_at`; return how many.

    The file is replaced at once: a run that is killed leaves the old one.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    part, count = output.with_name(f"{output.name}.part"), 0
    with ExitStack() as opened, part.open("w", encoding="utf-8") as joined:
        files = [
            opened.enter_context(path.open(encoding="utf-8")) for path in parts if path.exists()
        ]
        for _, line in merge(*map(_timed, files)):
            joined.write(line)
            count += 1
    part.replace(output)
    return count


def _timed(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the whole lines of a file with their times, of which each is the latest so far."""
    latest = ""
    for line in lines:
        if line.endswith("\n"):  # else it was cut off by a kill; its item comes again
            latest = max(latest, str(json.loads(line).get("fetched_at", "")))
            yield latest, line
