"""The TRES_REFRESH_* settings of `scrapy crawl refresh`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import ConfigError, Group, Setting, part, setting
from tres_scrapy.config.option import Options
from tres_scrapy.config.parser import duration, flag, whole
from tres_scrapy.config.typed import named, typed

DAY: Final = 86_400.0  # seconds
# Settings of the crawl that mean the same here
SHARED = (
    "max_crawl_delay",
    "private_addresses",
    "random_seed",
    "web",
    "web_seed",
    "web_log",
)


@dataclass(frozen=True)
class RefresherOptions:
    """What the collection is kept by; times in seconds."""

    budget: int = 0
    horizon: float | None = setting(
        duration, None, "time over which they are spread, such as 6h; unset: made at once"
    )
    min_age: float = setting(duration, 60.0, "a page is not asked for again before this time")
    max_age: float = setting(
        duration, 30 * DAY, "a page is asked for first when its copy is this old"
    )
    jitter: float = 0.1  # share by which an interval varies, so that visits do not bunch
    grace: int = 3  # answers 404 or 410 in a row until a page is gone
    retry: float = setting(duration, 3_600.0, "time after a failure, twice as long after each more")
    minor: int = 12  # lanes of 256 in which a text may differ and be the same
    seed: int = 0
    follow: bool = False  # whether links that were not there before are told


@dataclass(frozen=True)
class RefreshConfig(Options):
    """Everything a refresh run is told beside the settings that it shares with a crawl.

    A field `name` is the setting TRES_REFRESH_NAME and the spider argument `-a name=`.
    """

    prefix = "TRES_REFRESH_"
    group = Group.REFRESH

    collection: Path | None = setting(Path, None, "JSON lines of the pages to keep fresh")
    budget: int | None = setting(
        whole(1), None, "requests that the run makes at most; unset: one for each page"
    )
    refresher: RefresherOptions = part(RefresherOptions, Group.REFRESH)
    watch: bool = setting(flag, False, "whether another horizon follows the one before")
    store: Path | None = setting(Path, None, "SQLite file; unset: COLLECTION.refresh.sqlite")
    output: Path | None = setting(Path, None, "items; unset: COLLECTION.refresh.jsonl")
    found: Path | None = setting(
        Path, None, "list of links that pages did not have before; a crawl takes it by seed=@FILE"
    )

    @classmethod
    def arguments(cls) -> list[Setting]:
        """Return the settings that are arguments of the spider."""
        shared = [each for each in Config.declared().values() if each.argument in SHARED]
        return [*cls.declared().values(), *shared]

    def __post_init__(self) -> None:
        """Refuse values that do not go together."""
        if self.refresher.min_age > self.refresher.max_age:
            raise ConfigError(
                f"{named('TRES_REFRESH_MIN_AGE')} {self.refresher.min_age:g} s must not be above "
                f"max_age, {self.refresher.max_age:g} s"
            )
        if self.watch and self.refresher.horizon is None:
            raise ConfigError(
                f"{typed('watch', True)} needs a horizon: add {typed('horizon', 'TIME')}"
            )

    def require_collection(self) -> Path:
        """Return the file of the collection; raise ConfigError without the setting."""
        if self.collection is None:
            raise ConfigError(
                f"no collection: add {typed('collection', 'FILE')}, JSON lines with a url on each"
            )
        return self.collection

    def beside(self, given: Path | None, ending: str) -> Path:
        """Return a file that was named, else one beside the collection."""
        collection = self.require_collection()
        return given or collection.with_name(f"{collection.stem}.refresh.{ending}")

    def options(self, pages: int, config: Config) -> RefresherOptions:
        """Return what a collection of so many pages is kept by."""
        return replace(
            self.refresher,
            budget=self.budget or pages,
            seed=config.random_seed,
            follow=self.found is not None,
        )
