"""The options of a crawl, nested by what they are for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tres_scrapy.config.cap import Cap
from tres_scrapy.config.declaration import ConfigError, Group, part, setting
from tres_scrapy.config.download import DownloadOptions
from tres_scrapy.config.learning import AgentOptions, LearningOptions, TreeOptions
from tres_scrapy.config.limit import FrontierLimits, ReadingLimits
from tres_scrapy.config.offline import WebOptions
from tres_scrapy.config.option import Options
from tres_scrapy.config.output import OutputOptions
from tres_scrapy.config.parser import flag, identifier, number, query_url, seeds, whole
from tres_scrapy.config.render import RenderOptions
from tres_scrapy.config.watching import WatchOptions


@dataclass(frozen=True)
class Config(Options):
    """Everything a crawl is told, each as the setting TRES_NAME or the argument `-a name=`."""

    topic: str | None = setting(identifier, None, "topic pack that says what is relevant")
    seed: tuple[str, ...] = setting(
        seeds, (), "URLs to start from, comma between two, or @FILE with one a line"
    )
    pages: int | None = setting(whole(1), None, "pages to fetch, T; unset: until links run out")
    max_per_domain: Cap | None = setting(
        Cap.parse, None, "pages fetched of one domain at most, MAX: 10, 5_2 (adaptive) or none"
    )
    models: Path | None = setting(
        Path, None, "directory of the topic packs; unset: models/ here, and those that ship"
    )
    # Its rule stands where the policies are: policies/registry.py
    policy: str = setting(str, "tres", "who chooses the next URL", group=Group.RESEARCH)
    search_url: str | None = setting(
        query_url,
        None,
        "search endpoint with {query} in it, for policies that ask one",
        group=Group.RESEARCH,
    )
    random_seed: int = setting(
        whole(0, 2**31 - 1), 0, "seed of every random choice", group=Group.RESEARCH
    )
    domain_prior: float = setting(
        number(0, 1000),
        10.0,
        "visits of ratio 0.5 that feature 7 starts from; 0: the paper's",
        group=Group.RESEARCH,
    )
    domain_inlinks: bool = setting(
        flag,
        True,
        "whether feature 7 of a new domain tells who links to it; 0: the paper's 0.5",
        group=Group.RESEARCH,
    )
    torch_threads: int = setting(
        whole(1, 1024), 1, "threads PyTorch computes with", group=Group.RESEARCH
    )
    frontier: FrontierLimits = part(FrontierLimits, Group.SCOPE)
    reading: ReadingLimits = part(ReadingLimits, Group.SCOPE)
    download: DownloadOptions = part(DownloadOptions, Group.POLITENESS)
    output: OutputOptions = part(OutputOptions, Group.OUTPUT)
    watch: WatchOptions = part(WatchOptions, Group.WATCHING)
    render: RenderOptions = part(RenderOptions, Group.RENDERING)
    tree: TreeOptions = part(TreeOptions, Group.LEARNING)
    agent: AgentOptions = part(AgentOptions, Group.LEARNING)
    learning: LearningOptions = part(LearningOptions, Group.LEARNING)
    web: WebOptions = part(WebOptions, Group.WEB)

    def __post_init__(self) -> None:
        """Refuse values that do not go together."""
        cap = self.max_per_domain
        if cap is not None and cap.first != cap.last and self.pages is None:
            raise ConfigError("an adaptive MAX falls with the share of pages done: add -a pages=N")

    def require_seed(self) -> None:
        """Raise ConfigError if there is nowhere to start."""
        web = self.web
        if not self.seed and web.kind is None:
            raise ConfigError(
                "no seed: add -a seed=URL, where to start, or -a web=synthetic, to try it offline"
            )
        what = {"corpus": "its file of documents", "recorded": "a WARC file or a folder of them"}
        if web.kind in what and web.data is None:
            raise ConfigError(f"TRES_WEB={web.kind} needs TRES_WEB_DATA, {what[web.kind]}")
