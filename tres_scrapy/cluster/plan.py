"""What every process of a crawl on many machines must know of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from tres_scrapy.report.record_path import SHARD
from tres_scrapy.url.message import TresError

OUTPUT: Final = "pages.jsonl"
LEARNER: Final = "learner"
RUN: Final = "run.txt"  # the file that holds `Plan.run`


@dataclass(frozen=True)
class Plan:
    """A crawl in shards.

    `arguments` are those of the spider, `settings` those of Scrapy beside the project's. All files
    lie below `job`. `identity` is what it must have in common with the crawl that it resumes. `run`
    is another text each time that the user starts the crawl.

    With `snapshots`, a URL, each node has a folder of its own: `template`, with environment
    variables of that node. Each part of the crawl is copied to the URL every `interval` seconds.
    """

    job: Path
    shards: int
    pages: int | None = None
    arguments: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    identity: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    snapshots: str = ""
    template: str = ""
    interval: int = 60

    def here(self) -> Plan:
        """Return the plan with the folder of this node; raise TresError if it has none."""
        return replace(self, job=local_folder(self.template)) if self.snapshots else self

    def share(self) -> None:
        """Write to the folder of the job by which other nodes know that it is the same."""
        self.log("any").parent.mkdir(parents=True, exist_ok=True)
        (self.job / RUN).write_text(self.run, encoding="utf-8")

    def require_shared(self) -> None:
        """Raise TresError unless the folder of the job on this node is the driver's."""
        file = self.job / RUN
        if not file.exists() or file.read_text(encoding="utf-8") != self.run:
            raise TresError(f"--job {self.job} is another folder on this node: it must be shared")

    def folder(self, shard: int) -> Path:
        """Return the folder of a shard: its JOBDIR, output and record."""
        return self.job / f"{SHARD}{shard}"

    def log(self, process: str) -> Path:
        """Return the log file of a process, such as shard-0."""
        return self.job / "logs" / f"{process}.log"

    def arguments_of(self, shard: int) -> dict[str, str]:
        """Return the arguments of the spider of a shard."""
        own = {"shard": str(shard), "shards": str(self.shards)}
        own["output"] = str(self.folder(shard) / OUTPUT)
        once = dict.fromkeys(("dashboard", "report"), "0")  # for the whole crawl
        return {**self.arguments, **own, **once}

    def settings_of(self, shard: int) -> dict[str, str]:
        """Return the settings of Scrapy of a shard."""
        log = str(self.log(f"shard-{shard}"))
        return {**self.settings, "JOBDIR": str(self.folder(shard)), "LOG_FILE": log}


def local_folder(template: str) -> Path:
    """Return a folder with the environment variables of this node; raise TresError."""
    path = Path(os.path.expandvars(template))
    if "$" in str(path):
        raise TresError(f"--job {template!r}: this node does not have that environment variable")
    if not path.is_absolute():
        raise TresError(f"--job {template!r}: the path must begin with / on each node")
    return path.resolve()
