"""What every process of a crawl on many machines must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tres_scrapy.report.record_path import SHARD

OUTPUT: Final = "pages.jsonl"
LEARNER: Final = "learner"
RUN: Final = "run.txt"  # the file that holds `Plan.run`


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

    def share(self) -> None:
        """Write to the folder of the job by which other nodes know that it is the same."""
        self.log("any").parent.mkdir(parents=True, exist_ok=True)
        (self.job / RUN).write_text(self.run, encoding="utf-8")

    def is_shared(self) -> bool:
        """Return whether the folder of the job on this node is the driver's."""
        file = self.job / RUN
        return file.exists() and file.read_text(encoding="utf-8") == self.run

    def folder(self, shard: int) -> Path:
        """Return the folder of a shard: its JOBDIR, output and record."""
        return self.job / f"{SHARD}{shard}"

    def log(self, process: str) -> Path:
        """Return the log file of a process, such as shard-0."""
        return self.job / "logs" / f"{process}.log"

    def arguments_of(self, shard: int) -> dict[str, str]:
        """Return the arguments of the spider of a shard."""
        own = {"shard": str(shard), "shards": str(self.shards)}
        files = {"output": str(self.folder(shard) / OUTPUT), "append": "1"}
        once = dict.fromkeys(("dashboard", "progress_line", "report"), "0")  # for the whole crawl
        return {**self.arguments, **own, **files, **once}

    def settings_of(self, shard: int) -> dict[str, str]:
        """Return the settings of Scrapy of a shard."""
        log = str(self.log(f"shard-{shard}"))
        return {**self.settings, "JOBDIR": str(self.folder(shard)), "LOG_FILE": log}
