"""The judge of a crawl: from a topic pack, or from keywords, which make a new topic."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError
from tres_scrapy.config.typed import typed
from tres_scrapy.crawl.assembly import require_packs
from tres_scrapy.crawl.crawl import Crawl
from tres_scrapy.crawl.registry import POLICIES, kind_of
from tres_scrapy.items import CHOSEN
from tres_scrapy.run.identity import identity_of, journal_kind
from tres_scrapy.topic.judge_process import Task
from tres_scrapy.topic.keyword import KeywordError, KeywordSet
from tres_scrapy.topic.learning_judge import LearningTask
from tres_scrapy.topic.pack import Pack
from tres_scrapy.topic.shipped import packs, shipped_models
from tres_scrapy.topic.topic_folder import IN_JOB, SUFFIX, TopicFolder
from tres_scrapy.topic.topic_learner import open_topic
from tres_scrapy.url.message import plainly, plural

logger = logging.getLogger(__name__)


def task_of(config: Config, output: Path, jobdir: str | None) -> Task:
    """Return what the judging process needs; make the first pack of a new topic.

    A trained topic is corrected by answers, unless several processes judge, or in shards.
    Raise ConfigError if there is no topic, or if keywords or policy do not allow a new one,
    TresError if `jobdir` holds another crawl or another crawl learns the topic.
    """
    kind = kind_of(config.policy)
    is_new = config.words.file is not None
    if is_new and kind.classifier:
        alike = next(name for name, each in POLICIES.items() if not each.classifier)
        raise ConfigError(
            f"policy {config.policy!r} needs a trained pack, not keywords: use policy {alike!r}"
        )
    pack, *more = [Path()] if is_new else require_packs(config)
    task = Task(
        pack,
        config.reading,
        kind.reads_text,
        cues=kind.reads_cues and config.links.enabled,
        content=tuple(name for name in config.output.fields if name in CHOSEN),
        own_judge=config.judge,
        more_packs=tuple(more),
    )
    folder = topic_folder(output, jobdir)
    if config.words.answers is not None:
        _check_answers(config.words.answers)
    if config.words.file is None:
        return _corrected_task(task, config, folder, jobdir)
    return _learning_task(task, config, config.words.file, folder, jobdir)


def _corrected_task(task: Task, config: Config, folder: TopicFolder, jobdir: str | None) -> Task:
    """Return the task of a trained topic that answers correct."""
    words = config.words
    given = words.answers, words.answerer, config.watch.dashboard
    if config.judges > 1 or config.shard.count:
        return task
    _check_job(config, jobdir)
    if folder.pack.is_dir():
        old = Pack.load(folder.pack)
        if not old.prior_weight or old.name != config.topic:
            of = f"with topic {old.name!r}" if old.prior_weight else "from keywords"
            raise ConfigError(
                f"{folder.path} holds what a crawl {of} learned: give another {typed('output')} "
                "or JOBDIR"
            )
    asks, doubts = any(each is not None for each in given), bool(config.watch.record or jobdir)
    return _learning(task, config, folder, asks=asks, doubts=doubts)


def _learning_task(
    task: Task, config: Config, file: Path, folder: TopicFolder, jobdir: str | None
) -> Task:
    """Make the first pack of a topic from keywords, or continue with what it has learned."""
    lines = keyword_lines(file)
    _refuse_name_of_pack(config, folder.pack)
    _check_job(config, jobdir)
    try:
        keywords = KeywordSet.parse(lines)
        is_new, notes = open_topic(str(config.topic), keywords, folder.path)
    except KeywordError as error:
        raise ConfigError(f"keywords {file.name!r}: {error}") from None
    except OSError as error:
        raise ConfigError(f"the topic cannot be kept in {folder.path}: {plainly(error)}") from None
    for note in notes:
        logger.info("Topic: %s", note)
    count = len(keywords.words) + len(keywords.phrases)
    logger.info(
        "Topic: %s%s, from %d %s; what is learned lies in %s",
        "a new one, " if is_new else "",
        config.topic,
        count,
        plural(count, "keyword"),
        folder.path,
    )
    return _learning(replace(task, pack=folder.pack), config, folder, keywords=lines)


def _learning(task: Task, config: Config, folder: TopicFolder, **more: Any) -> LearningTask:
    return LearningTask(
        **vars(task),
        folder=folder.path,
        name=str(config.topic),
        answers=config.words.answers,
        seed=config.random_seed,
        models=shipped_models(),
        **more,
    )


def _check_job(config: Config, jobdir: str | None) -> None:
    """Raise TresError if a JOBDIR holds another crawl: this one would write its topic there."""
    if jobdir:
        journal_kind(config).check(Path(jobdir), identity_of(config))


def topic_folder(output: Path, jobdir: str | None) -> TopicFolder:
    """Return the folder of a topic that learns."""
    return TopicFolder(Path(jobdir, IN_JOB) if jobdir else output.with_suffix(SUFFIX))


def new_folder(output: Path, jobdir: str | None) -> Path | None:
    """Return the folder that a crawl makes for its topic; None if it exists, or is in a job."""
    path = topic_folder(output, jobdir).path
    return None if jobdir or path.exists() else path


def learns(config: Config, output: Path, jobdir: str | None) -> bool:
    """Return whether the topic learns: from keywords, or from answers about its pages."""
    return config.words.file is not None or topic_folder(output, jobdir).pack.is_dir()


def remove_unused(folder: Path, crawl: Crawl) -> None:
    """Remove the folder of a new topic that has learned nothing: no page was fetched."""
    if not crawl.pages:
        rmtree(folder, ignore_errors=True)


def _refuse_name_of_pack(config: Config, made: Path) -> None:
    """Raise ConfigError if a new topic would have the name of a trained one.

    A crawl that made its topic before may continue; offline webs have topics of these names.
    """
    if config.topic == config.words.topic or config.web.kind is not None or made.exists():
        return
    if config.topic in packs(config.models):
        raise ConfigError(
            f"topic {config.topic!r} is a trained topic, and {typed('keywords')} starts a new one: "
            "leave out one of them, or give the new topic another name"
        )


def _check_answers(path: Path) -> None:
    """Raise ConfigError if a file of answers cannot be read: its path may be mistyped."""
    try:
        path.open("rb").close()
    except FileNotFoundError:
        raise ConfigError(
            f"answers {str(path)!r} does not exist: check the path, or make an empty file and "
            "write answers into it during the crawl"
        ) from None
    except OSError as error:
        raise ConfigError(
            f"answers {str(path)!r} cannot be read: {plainly(error, named=True)}"
        ) from None


def keyword_lines(path: Path) -> tuple[str, ...]:
    """Return the lines of a keywords file; raise ConfigError if it cannot be read."""
    try:
        return tuple(path.read_text(encoding="utf-8-sig").split("\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"keywords {str(path)!r} cannot be read: {plainly(error, named=True)}"
        ) from None
