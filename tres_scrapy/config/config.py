"""The TRES_* settings: their names, rules and defaults, read in one place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from scrapy.settings import BaseSettings

from tres_scrapy.agent.ddqn import AgentOptions
from tres_scrapy.config.parser import (
    flag,
    identifier,
    number,
    one_of,
    options,
    packed_warc,
    paths,
    port,
    query_url,
    seeds,
    some_of,
    textfile,
    whole,
)
from tres_scrapy.crawl.setup import LearningOptions
from tres_scrapy.frontier.ledger import Cap
from tres_scrapy.frontier.limit import FrontierLimits
from tres_scrapy.frontier.tree import TreeOptions
from tres_scrapy.page.text import ReadingLimits
from tres_scrapy.policies.registry import POLICIES
from tres_scrapy.surface.selector import SELECTORS
from tres_scrapy.topic.pack import TOPIC_FILE
from tres_scrapy.topic.shipped import shipped_models

PREFIX = "TRES_"
REFRESH_PREFIX = "TRES_REFRESH_"  # see refresh_config.py
HERE = Path("models")  # where tres-train writes
WEBS = ("synthetic", "corpus", "recorded", "deep", "changing")
NEVER, AUTO, ALWAYS = "never", "auto", "always"


class ConfigError(ValueError):
    """Says in one line which setting is wrong, its value, the rule and what to do."""


def setting(parse: Callable[[str], Any], default: Any, meaning: str) -> Any:
    """Return a field that is read from a setting."""
    return field(default=default, metadata={"parse": parse, "meaning": meaning})


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a crawl is told.

    A field `name` is the setting TRES_NAME and the spider argument `-a name=`.
    """

    topic: str | None = setting(identifier, None, "topic pack that says what is relevant")
    seed: tuple[str, ...] = setting(
        seeds, (), "URLs to start from, comma between two, or @FILE with one a line"
    )
    pages: int | None = setting(whole(1), None, "pages to fetch, T; unset: until links run out")
    max_per_domain: Cap | None = setting(
        Cap.parse, None, "pages fetched of one domain at most, MAX: 10, 5_2 (adaptive) or none"
    )
    domain_prior: float = setting(
        number(0, 1000), 10.0, "visits of ratio 0.5 that feature 7 starts from; 0: the paper's"
    )
    domain_inlinks: bool = setting(
        flag, True, "whether feature 7 of a new domain tells who links to it; 0: the paper's 0.5"
    )
    policy: str = setting(one_of(*POLICIES), "tres", "who chooses the next URL")
    search_url: str | None = setting(
        query_url, None, "search endpoint with {query} in it, for policies that ask one"
    )
    random_seed: int = setting(whole(0, 2**31 - 1), 0, "seed of every random choice")
    models: Path | None = setting(
        Path, None, "directory of the topic packs; unset: models/ here, and those that ship"
    )
    output: Path | None = setting(Path, None, "JSON lines file of relevant pages")
    csv: bool = setting(
        flag, False, "write tables of relevant pages and of their domains beside the JSON lines"
    )
    known: tuple[Path, ...] = setting(
        paths, (), "files, comma between two, of URLs or domains that are not new"
    )
    warc: str = setting(
        one_of("none", "relevant", "all"), "none", "which fetches are archived as WARC"
    )
    warc_file: Path | None = setting(
        packed_warc, None, "that archive; unset: beside the JSON lines, as .warc.gz"
    )
    metrics_port: int | None = setting(
        whole(0, 65535), None, "where Prometheus may ask for metrics, 0: any that is free"
    )
    metrics_host: str = setting(str, "127.0.0.1", "address of this machine that it may ask at")
    metrics_file: Path | None = setting(
        textfile, None, "the same metrics as a file for the textfile collector of node_exporter"
    )
    max_failures: int = setting(
        whole(1), FrontierLimits.failures, "failures in a row that end a domain"
    )
    max_frontier: int = setting(
        whole(1), FrontierLimits.pending, "links that wait in the frontier at most"
    )
    max_pending_per_domain: int = setting(
        whole(1, 10**9), FrontierLimits.pending_per_domain, "those of one domain at most"
    )
    max_html: int = setting(whole(1), ReadingLimits.html, "characters of a page that are read")
    max_links: int = setting(whole(1), ReadingLimits.links, "links read from one page")
    max_anchor: int = setting(
        whole(1), ReadingLimits.anchor, "characters kept of the text of a link"
    )
    max_crawl_delay: float = setting(
        number(0, 86400), 30.0, "seconds; a host whose robots.txt asks for more is left alone"
    )
    max_unreachable: int = setting(
        whole(0), 50, "hosts in a row that cannot be reached until the crawl stops; 0: any number"
    )
    private_addresses: bool = setting(
        flag, False, "whether links may lead to this machine, its network and files"
    )

    render: str = setting(
        one_of(NEVER, AUTO, ALWAYS), NEVER, "which pages are run in a browser; auto: empty ones"
    )
    browser: Path | None = setting(Path, None, "Chromium to render with; unset: it is looked for")
    browser_options: tuple[str, ...] = setting(options, (), "options to start it with, --NAME=X")
    browser_sandbox: bool | None = setting(
        flag,
        None,
        "whether Chromium's sandbox is on; unset: unless run as root, where it cannot be",
    )
    render_timeout: float = setting(
        number(1, 600), 30.0, "seconds in which a page must load; then what is there is read"
    )
    render_idle: float = setting(
        number(0, 60), 5.0, "seconds more for its network to fall quiet; 0: it is read once loaded"
    )
    render_pages: int = setting(whole(1, 100), 4, "pages in the browser at once")
    render_block: tuple[str, ...] = setting(
        some_of("image", "font", "media", "style"),
        ("image", "font", "media"),
        "what is not loaded for a page, comma between two, or none",
    )

    torch_threads: int = setting(whole(1, 1024), 1, "threads PyTorch computes with")
    record: bool = setting(flag, True, "keep a record of the run: docs/report.md")
    report: bool = setting(flag, True, "write the report of the record when the crawl ends")
    progress_interval: float = setting(number(0, 3600), 10.0, "seconds between progress lines")
    dashboard: int | None = setting(
        port, None, "live page on this machine: 1, any free port, or a port; docs/live.md"
    )
    progress_line: bool = setting(
        flag, True, "whether a terminal shows one live line instead of them"
    )

    tree_max_depth: int = setting(whole(1), TreeOptions.max_depth, "depth of the tree")
    tree_min_samples: int = setting(
        whole(2), TreeOptions.min_samples, "experience samples from which a leaf may split"
    )
    tree_min_share: float = setting(
        number(0, 0.5), TreeOptions.min_share, "share of them that each child keeps at least"
    )
    bucketed_features: bool = setting(
        flag, TreeOptions.bucketed, "cut features 2, 3 and 7 into ten buckets for the tree"
    )

    gamma: float = setting(number(0, 0.999), AgentOptions.gamma, "discount of future reward")
    learning_rate: float = setting(number(0, 1), AgentOptions.learning_rate, "Adam's rate")
    learning_rate_decay: float = setting(
        number(0, 1),
        AgentOptions.learning_rate_decay,
        "its factor at each target update, down to a quarter of the first",
    )
    target_period: int = setting(
        whole(1), AgentOptions.target_period, "gradient steps between target updates"
    )
    representatives: int = setting(
        whole(1),
        LearningOptions.representatives,
        "samples of each leaf that Q is asked for, or the root of their number; 1: the paper's one",
    )
    exploration_steps: int = setting(
        whole(0), LearningOptions.exploration_steps, "steps in which the leaf is drawn uniformly"
    )
    warm_up_steps: int = setting(
        whole(0), LearningOptions.warm_up_steps, "steps that bring several gradient steps each"
    )
    warm_up_updates: int = setting(
        whole(0, 1000), LearningOptions.warm_up_updates, "gradient steps of a step of the warm-up"
    )
    update_period: int = setting(
        whole(1), LearningOptions.update_period, "steps between gradient steps"
    )
    batch_size: int = setting(
        whole(1, 10_000), LearningOptions.batch_size, "experiences learnt from in a gradient step"
    )
    replay_capacity: int = setting(
        whole(1, 10**8), LearningOptions.replay_capacity, "experiences kept to learn from"
    )
    new_domains: float = setting(
        number(0, 1),
        LearningOptions.new_domains,
        "share of the choices kept for domains never visited; 0: the paper's",
    )
    ucb: float = setting(
        number(0, 100), LearningOptions.ucb, "widths of its confidence added to Q; 0: the paper's"
    )

    surface_selector: str = setting(
        one_of(*SELECTORS), "recapture", "who chooses what a search box is asked next"
    )
    surface_queries: int = setting(whole(1), 100, "queries to a site at most")
    surface_pages: int = setting(whole(1), 10, "pages of results read of a query at most")
    surface_min_yield: float = setting(
        number(0, 1000), 1.0, "new records a query, the mean of ten, below which a site is left"
    )
    surface_post: bool = setting(flag, False, "whether a search box may be asked by POST")
    surface_follow: bool = setting(
        flag, True, "whether records join the frontier; 0: their links are the items, unread"
    )

    web: str | None = setting(one_of(*WEBS), None, "offline web to start and crawl")
    web_seed: int = setting(whole(0, 2**31 - 1), 0, "which synthetic web")
    web_data: Path | None = setting(
        Path, None, "documents of the corpus web; WARC file or folder of the recorded web"
    )
    web_labels: Path | None = setting(
        Path, None, "relevant pages of the recorded web: URLs, or JSON lines of another crawl"
    )
    web_port: int = setting(whole(0, 65535), 0, "port of the offline web, 0: any that is free")
    web_pages: int = setting(whole(1, 10**6), 2_000, "pages of the changing web")
    web_day: float = setting(
        number(1e-3, 1e9), 86_400.0, "seconds that a day of the changing web lasts"
    )
    web_log: Path | None = setting(Path, None, "the offline web's log of fetches, JSON lines")

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read the TRES_* settings; raise ConfigError at the first that is wrong."""
        return cls(**read_settings(cls, settings, PREFIX))

    @property
    def pack(self) -> str:
        """The name of the pack that judges pages: the topic's, or the one the policy asks for."""
        classifier = POLICIES[self.policy].classifier
        return f"{self.topic}-{classifier}" if classifier else str(self.topic)

    def packs(self) -> dict[str, Path]:
        """Return the directories of all packs by name: one of models/ here hides one that ships."""
        places = [shipped_models(), HERE] if self.models is None else [self.models]
        found = (path.parent for place in places for path in place.glob(f"*/{TOPIC_FILE}"))
        return {directory.name: directory for directory in found}

    def require_topic(self) -> None:
        """Raise ConfigError if it is not said what to look for, or no pack knows it."""
        packs = self.packs()
        place = f"{'models' if self.models is None else self.models.name}/"
        if self.topic is None:
            raise ConfigError(f"no topic: add -a topic=NAME, one of {', '.join(sorted(packs))}")
        if self.topic not in packs:
            raise ConfigError(
                f"unknown topic {self.topic!r}: the packs in {place} are "
                f"{', '.join(sorted(packs))}; train one with `scrapy tres-train`"
            )
        if self.pack not in packs:
            raise ConfigError(
                f"policy {self.policy!r} judges pages by the pack {self.pack!r}, which is not in "
                f"{place}: train it with `scrapy tres-train {self.pack} --classifier "
                f"{POLICIES[self.policy].classifier}`"
            )

    def require_seed(self) -> None:
        """Raise ConfigError if there is nowhere to start."""
        if not self.seed and self.web is None:
            raise ConfigError(
                "no seed: add -a seed=URL, where to start, or -a web=synthetic, to try it offline"
            )
        what = {"corpus": "its file of documents", "recorded": "a WARC file or a folder of them"}
        if self.web in what and self.web_data is None:
            raise ConfigError(f"TRES_WEB={self.web} needs TRES_WEB_DATA, {what[self.web]}")

    def __post_init__(self) -> None:
        """Refuse values that do not go together."""
        cap = self.max_per_domain
        if cap is not None and cap.first != cap.last and self.pages is None:
            raise ConfigError("an adaptive MAX falls with the share of pages done: add -a pages=N")

    @property
    def frontier(self) -> FrontierLimits:
        """What bounds the frontier."""
        return FrontierLimits(self.max_frontier, self.max_pending_per_domain, self.max_failures)

    @property
    def reading(self) -> ReadingLimits:
        """How much of a page is read."""
        return ReadingLimits(self.max_html, self.max_links, self.max_anchor)

    @property
    def tree(self) -> TreeOptions:
        """The options of the Tree-Frontier."""
        return TreeOptions(
            self.tree_max_depth, self.tree_min_samples, self.tree_min_share, self.bucketed_features
        )

    @property
    def agent(self) -> AgentOptions:
        """The options of the Double DQN."""
        return AgentOptions(
            gamma=self.gamma,
            learning_rate=self.learning_rate,
            learning_rate_decay=self.learning_rate_decay,
            target_period=self.target_period,
        )

    @property
    def learning(self) -> LearningOptions:
        """The options of exploration and learning."""
        return LearningOptions(
            self.representatives,
            self.exploration_steps,
            self.warm_up_steps,
            self.warm_up_updates,
            self.update_period,
            self.batch_size,
            self.replay_capacity,
            self.new_domains,
            self.ucb,
        )


def apply_arguments(settings: BaseSettings, arguments: dict[str, Any]) -> None:
    """Make each spider argument `name` the setting TRES_NAME; raise ConfigError if none is so."""
    known = {spec.name for spec in fields(Config)}
    for name, value in arguments.items():
        if name not in known:
            raise ConfigError(f"unknown argument -a {name}{suggestion(name, known)}")
        settings.set(PREFIX + name.upper(), value, priority="cmdline")


def read_settings(owner: type[Any], settings: BaseSettings, prefix: str) -> dict[str, Any]:
    """Return the values that are set of the fields of a class, each the setting PREFIX_NAME.

    ConfigError: one of them is wrong, or there is no field to a setting of that prefix.
    """
    known = {prefix + spec.name.upper(): spec for spec in fields(owner)}
    for name in map(str, settings):
        longest = next((each for each in (REFRESH_PREFIX, PREFIX) if name.startswith(each)), "")
        if longest == prefix and name not in known:
            raise ConfigError(f"unknown setting {name}{suggestion(name, known)}")
    values = {}
    for name, spec in known.items():
        raw = settings.get(name)
        if raw is not None and str(raw).strip():
            values[spec.name] = _parsed(name, str(raw).strip(), spec.metadata["parse"])
    return values


def _parsed(name: str, raw: str, parse: Callable[[str], Any]) -> Any:
    try:
        return parse(raw)
    except ValueError as error:
        argument = name.removeprefix(REFRESH_PREFIX).removeprefix(PREFIX).lower()
        raise ConfigError(f"{name} (-a {argument}=) {raw!r}: {error}") from None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what a misspelt name may have meant, as the end of a sentence."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
