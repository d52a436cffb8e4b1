"""The options of a crawl, in nested groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from tres_scrapy.config.declaration import ConfigError, Group, part, setting
from tres_scrapy.config.download import NEVER, DownloadOptions, RenderOptions, RestOptions
from tres_scrapy.config.extra import require
from tres_scrapy.config.guest import places
from tres_scrapy.config.learning import AgentOptions, LearningOptions, LinkOptions, TreeOptions
from tres_scrapy.config.limit import (
    Cap,
    FrontierLimits,
    ReadingLimits,
    ScopeOptions,
    StopRule,
    check_domains,
)
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.config.option import Options
from tres_scrapy.config.output import OutputOptions, WatchOptions
from tres_scrapy.config.parser import (
    answerer_name,
    callable_name,
    flag,
    names,
    seeds,
    some_of,
    whole,
)
from tres_scrapy.config.preset import DEPARTURES, PAPER
from tres_scrapy.config.typed import typed
from tres_scrapy.config.visit import VisitOptions

EXTRACTED: Final = frozenset({"markdown", "date"})  # fields that trafilatura finds


@dataclass(frozen=True)
class WordOptions:
    """The keywords of a new topic, and what answers about the pages of a topic."""

    file: Path | None = setting(
        Path,
        None,
        "file of keywords, one a line: the crawl makes a new topic from them and learns it",
        name="keywords",
        group=Group.EVERYDAY,
    )
    answers: Path | None = setting(
        Path,
        None,
        "file of answers, lines of `yes URL` or `no URL`, read when it changes, "
        "beside answers.txt in the topic's folder",
        group=Group.EVERYDAY,
    )
    answerer: str | None = setting(
        answerer_name,
        None,
        "program that answers in your place",
        group=Group.EVERYDAY,
        see="answerers.md",
    )
    answers_most: int = setting(
        whole(1), 50, "most pages that `answerer` is asked about", group=Group.EVERYDAY
    )

    @property
    def topic(self) -> str | None:
        """The name of the new topic unless another is given: that of the file."""
        return None if self.file is None else re.sub(r"[^\w-]+", "-", self.file.stem)


@dataclass(frozen=True)
class ShardOptions:
    """Which part of a crawl this process does."""

    number: int = setting(
        whole(0, 9_999), 0, "number of this shard; set by `tres cluster`", name="shard"
    )
    count: int = setting(
        whole(0, 10_000),
        0,
        "number of shards of the crawl, 0 without `tres cluster`, which sets it",
        name="shards",
    )


@dataclass(frozen=True)
class Config(Options):
    """All options of a crawl; each is the setting TRES_NAME or the argument `-a name=`."""

    topic: str | None = setting(
        names,
        None,
        "name of the topic pack, which decides what is relevant; several with commas between",
    )
    seed: tuple[str, ...] = setting(
        seeds, (), "URLs to start from, separated by commas, or @FILE with one URL per line"
    )
    pages: int | None = setting(
        whole(1), None, "number of pages to fetch (T); unset: crawl until no links are left"
    )
    stop: StopRule | None = setting(
        StopRule.parse,
        None,
        "stop early: coverage:0.9 when nine of ten relevant pages in reach are found, yield:0.02 "
        "when less than 2 % of the last pages are relevant",
        see="stop.md",
    )
    max_per_domain: Cap | None = setting(
        Cap.parse, None, "most pages from one domain (MAX): 10, 5_2 (falls from 5 to 2) or none"
    )
    sitemap: bool = setting(
        flag,
        False,
        "read the sitemaps and feeds of hosts that gave a relevant page, for links",
    )
    models: Path | None = setting(
        Path, None, "folder of topic packs; unset: ./models and the packs that are installed"
    )
    judge: str | None = setting(
        callable_name,
        None,
        "function of your own that judges pages; unset: the classifier of the pack",
        see="judge.md",
    )
    judges: int = setting(
        whole(1, 64),
        1,
        "processes that judge pages, for machines with more cores",
        see="judge.md",
    )
    # crawl/registry.py has the list of policies and checks the name
    policy: str = setting(
        str,
        "tres",
        "algorithm that chooses the next URL; `module:NAME` is one of your own",
        see="../CONTRIBUTING.md#add-a-policy",
        group=Group.RESEARCH,
    )
    random_seed: int = setting(
        whole(0, 2**31 - 1), 0, "seed of all random choices", group=Group.RESEARCH
    )
    # read by from_settings, when it sets the others
    preset: tuple[str, ...] = setting(
        some_of(PAPER, *DEPARTURES),
        (),
        "set departures from the paper back, all or some; what you set yourself wins",
        group=Group.RESEARCH,
        see="paper.md",
    )
    detect_copies: bool = True  # else a copy of an earlier page is like any page
    domain_prior: float = 10.0  # weight, in visits, of the initial ratio 0.5 in feature 7
    domain_inlinks: bool = True  # whether pages that link to a new domain estimate its feature 7
    trusted_seeds: bool = False  # whether every seed has reward 1
    words: WordOptions = part(WordOptions, Group.EVERYDAY)
    scope: ScopeOptions = part(ScopeOptions, Group.SCOPE)
    frontier: FrontierLimits = part(FrontierLimits, Group.SCOPE)
    reading: ReadingLimits = part(ReadingLimits, Group.SCOPE)
    download: DownloadOptions = part(DownloadOptions, Group.POLITENESS)
    visits: VisitOptions = part(VisitOptions, Group.POLITENESS)
    rest: RestOptions = part(RestOptions, Group.POLITENESS)
    output: OutputOptions = part(OutputOptions, Group.OUTPUT)
    watch: WatchOptions = part(WatchOptions, Group.OUTPUT)
    render: RenderOptions = part(RenderOptions, Group.RENDERING)
    tree: TreeOptions = part(TreeOptions, Group.LEARNING)
    agent: AgentOptions = part(AgentOptions, Group.LEARNING)
    learning: LearningOptions = part(LearningOptions, Group.LEARNING)
    links: LinkOptions = part(LinkOptions, Group.LEARNING)
    web: WebOptions = part(WebOptions, Group.WEB)
    shard: ShardOptions = part(ShardOptions, Group.CLUSTER)

    @classmethod
    def from_settings(cls, settings: Mapping[Any, Any]) -> Self:
        """Parse the settings, and set back the departures from the paper that they name."""
        config = super().from_settings(settings)
        names = DEPARTURES if PAPER in config.preset else config.preset
        values: dict[str, dict[str, Any]] = {}
        for name in names:
            part_name, value = DEPARTURES[name]
            values.setdefault(part_name, {})[name] = value
        parts = {name: replace(getattr(config, name), **values[name]) for name in values if name}
        return replace(config, **values.get("", {}), **parts)

    def __post_init__(self) -> None:
        """Name a new topic after its keywords; raise ConfigError if values contradict."""
        if self.words.file is not None and self.topic is None and self.web.kind == "synthetic":
            raise ConfigError(
                "the synthetic web knows the topics that `tres web --help` lists: with keywords "
                f"add one of them, such as {typed('topic', 'food')}"
            )
        if self.words.file is not None and self.topic is None:
            object.__setattr__(self, "topic", self.words.topic)
        if len(self.topics) > 1 and (self.judge is not None or self.words.file is not None):
            raise ConfigError(
                f"topic {self.topic!r}: several topics are judged by their packs: give one "
                f"topic, or leave out {typed('judge')} and {typed('keywords')}"
            )
        if self.judge is not None and self.words.file is not None:
            raise ConfigError(
                f"pages are judged by {typed('judge')} or by {typed('keywords')}, not by both: "
                "leave one"
            )
        for name in ("file", "answers", "answerer") if self.judges > 1 else ():
            if getattr(self.words, name) is not None:
                given = typed("keywords" if name == "file" else name)
                raise ConfigError(
                    f"{typed('judges', self.judges)}: with {given} one process judges pages and "
                    f"learns the topic: leave out one of them"
                )
        sites = [rule.site for rule in self.visits.sites]
        check_domains("TRES_SITE_RULES", sites, "requests")
        cap = self.max_per_domain
        if cap is not None and cap.first != cap.last and self.pages is None:
            raise ConfigError(
                f"an adaptive MAX depends on the number of pages: add {typed('pages', 'N')}"
            )
        if self.shard.count and not places("shard_crawl"):
            raise ConfigError("shards: this TRES was installed without crawls in shards")

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topic packs."""
        return () if self.topic is None else tuple(self.topic.split("+"))

    def require_packages(self) -> None:
        """Raise ConfigError if the crawl needs a package that is not installed."""
        if EXTRACTED.intersection(self.output.fields):
            require("content", f"{typed('fields', 'markdown')} or date")
        if self.render.mode != NEVER:
            require("render", typed("render", self.render.mode))

    def require_seed(self) -> None:
        """Raise ConfigError if there is no URL to start from."""
        web = self.web
        if not self.seed and web.kind is None:
            raise ConfigError(
                f"no seed: add {typed('seed', 'URL')} to start there, or "
                f"{typed('web', 'synthetic')} to try TRES offline"
            )
        what = {
            "corpus": "a file of documents",
            "recorded": "a WARC file or a folder of WARC files",
        }
        if web.kind in what and web.data is None:
            raise ConfigError(
                f"{typed('web', web.kind)} needs {typed('web_data', 'FILE')}: {what[web.kind]}"
            )
