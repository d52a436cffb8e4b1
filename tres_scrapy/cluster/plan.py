"""What every process of a crawl on many machines must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OUTPUT: Final = "pages.jsonl"
LEARNER: Final = "learner"


@dataclass(frozen=True)
class Plan:
    """A crawl in shards.

    `arguments` are those of the spider, `settings` those of Scrapy beside the project's. All files
    lie below `job`. `run` is another text each time that the user starts the crawl.
    """

    job: Path
    shards: int
    pages: int | None
    arguments: Mapping[str, str]
    settings: Mapping[str, str]
    identity: Mapping[str, str]
    run: str = ""

    def folder(self, shard: int) -> Path:
        """Return the folder of a shard: its JOBDIR, output and record."""
        return self.job / f"shard-{shard}"

    def log(self, process: str) -> Path:
        """Return the log file of a process, such as shard-0."""
        return self.job / "logs" / f"{process}.log"

    def arguments_of(self, shard: int) -> dict[str, str]:
        """Return the arguments of the spider of a shard."""
        own = {"shard": str(shard), "shards": str(self.shards)}
        files = {"output": str(self.folder(shard) / OUTPUT), "append": "1"}
        return {**self.arguments, **own, **files, "dashboard": "0", "progress_line": "0"}

    def settings_of(self, shard: int) -> dict[str, str]:
        """Return the settings of Scrapy of a shard."""
        log = str(self.log(f"shard-{shard}"))
        return {**self.settings, "JOBDIR": str(self.folder(shard)), "LOG_FILE": log}
