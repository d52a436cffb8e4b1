"""The TRES_REFRESH_* settings of `scrapy crawl refresh`, read in one place."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from scrapy.settings import BaseSettings

from tres_scrapy.config.config import (
    PREFIX,
    REFRESH_PREFIX,
    Config,
    ConfigError,
    read_settings,
    setting,
    suggestion,
)
from tres_scrapy.config.parser import duration, flag, number, one_of, whole
from tres_scrapy.refresh.keeper_option import KeeperOptions
from tres_scrapy.refresh.roster import POLICIES

# Settings of the crawl that mean the same here
SHARED = (
    *("max_crawl_delay", "max_html", "max_links", "private_addresses", "progress_interval"),
    *("random_seed", "web", "web_seed", "web_port", "web_pages", "web_day", "web_log"),
)


@dataclass(frozen=True, slots=True)
class RefreshConfig:
    """Everything a refresh run is told.

    A field `name` is the setting TRES_REFRESH_NAME and the spider argument `-a name=`.
    """

    collection: Path | None = setting(Path, None, "JSON lines of the pages to keep fresh")
    budget: int | None = setting(
        whole(1), None, "requests that the run makes at most; unset: one for each page"
    )
    horizon: float | None = setting(
        duration, None, "time over which they are spread, such as 6h; unset: made at once"
    )
    policy: str = setting(one_of(*POLICIES), KeeperOptions.policy, "who chooses the next page")
    watch: bool = setting(flag, False, "whether another horizon follows the one before")
    min_age: float = setting(
        duration, KeeperOptions.min_age, "a page is not asked for again before this time"
    )
    max_age: float = setting(
        duration, KeeperOptions.max_age, "a page is asked for first when its copy is this old"
    )
    jitter: float = setting(
        number(0, 1), KeeperOptions.jitter, "share of an interval that it is longer or shorter"
    )
    grace: int = setting(
        whole(1), KeeperOptions.grace, "answers 404 or 410 in a row until a page is gone"
    )
    retry: float = setting(
        duration, KeeperOptions.retry, "time after a failure, twice as long after each more"
    )
    minor: int = setting(
        whole(0, 256),
        KeeperOptions.minor,
        "lanes of 256 in which a text may differ and be the same",
    )
    minor_is_change: bool = setting(
        flag, KeeperOptions.minor_is_change, "whether such differences count as changes"
    )
    stepped: bool = setting(
        flag, False, "whether time goes by requests: for benchmarks on a changing web that does so"
    )
    store: Path | None = setting(Path, None, "SQLite file; unset: COLLECTION.refresh.sqlite")
    output: Path | None = setting(Path, None, "items; unset: COLLECTION.refresh.jsonl")
    found: Path | None = setting(
        Path, None, "list of links that pages did not have before, for `crawl tres -a seed=@FILE`"
    )
    report: Path | None = setting(Path, None, "page of figures; unset: COLLECTION.refresh.html")

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read the settings; raise ConfigError at the first that is wrong."""
        return cls(**read_settings(cls, settings, REFRESH_PREFIX))

    def __post_init__(self) -> None:
        """Refuse values that do not go together."""
        if self.min_age > self.max_age:
            raise ConfigError(
                f"TRES_REFRESH_MIN_AGE {self.min_age:g} s must not be above max_age, "
                f"{self.max_age:g} s"
            )
        for name in ("watch", "stepped"):
            if getattr(self, name) and self.horizon is None:
                raise ConfigError(
                    f"TRES_REFRESH_{name.upper()} needs a horizon: add -a horizon=TIME"
                )

    def require_collection(self) -> Path:
        """Return the file of the collection; raise ConfigError if none is named."""
        if self.collection is None:
            raise ConfigError(
                "no collection: add -a collection=FILE, JSON lines with a url on each"
            )
        return self.collection

    def beside(self, given: Path | None, ending: str) -> Path:
        """Return a file that was named, else one beside the collection."""
        collection = self.require_collection()
        return given or collection.with_name(f"{collection.stem}.refresh.{ending}")

    def options(self, pages: int, config: Config) -> KeeperOptions:
        """Return what a collection of so many pages is kept by."""
        return KeeperOptions(
            *(self.budget or pages, self.horizon, self.policy, self.min_age, self.max_age),
            *(self.jitter, self.grace, self.minor, self.minor_is_change, self.retry),
            seed=config.random_seed,
            follow=self.found is not None,
        )


def apply_refresh_arguments(settings: BaseSettings, arguments: dict[str, Any]) -> None:
    """Make each spider argument the setting it names; raise ConfigError if none is so."""
    own = {spec.name for spec in fields(RefreshConfig)}
    for name, value in arguments.items():
        if name not in own | set(SHARED):
            known = [*own, *SHARED]
            raise ConfigError(f"unknown argument -a {name}{suggestion(name, known)}")
        prefix = REFRESH_PREFIX if name in own else PREFIX
        settings.set(prefix + name.upper(), value, priority="cmdline")
