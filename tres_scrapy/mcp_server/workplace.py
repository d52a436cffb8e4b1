"""The folder of an agent's crawls: each is a process of `tres crawl` with a JOBDIR of its own."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tres_scrapy.config.parser import whole
from tres_scrapy.run.run_file import NAME as RECORD
from tres_scrapy.topic.shipped import topics
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.message import TresError, printable

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")  # of a crawl: no path, no option
KEYWORD: Final = re.compile(r"[^\W_][\w' -]{0,59}")
MOST_KEYWORDS: Final = 50
MOST_SEEDS: Final = 100
PATIENCE: Final = 60.0  # seconds that a crawl has to end by itself
TRES: Final = sys.executable, "-m", "tres_scrapy.cli.main"


@dataclass
class Workplace:
    """Starts and stops the crawls in a folder; the end of the server stops them.

    `arguments` are given to each crawl, as `-a` gives them. Agents cannot change them.
    """

    folder: Path
    most_pages: int = 1_000  # of a crawl
    most_running: int = 2  # crawls at once
    arguments: Mapping[str, str] = field(default_factory=dict)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the names of the crawls."""
        if not self.folder.is_dir():
            return []
        return sorted(
            path.name
            for path in self.folder.iterdir()
            if NAME.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
        )

    def place(self, name: str) -> Path:
        """Return the folder of a crawl; raise TresError if there is none of this name."""
        if name not in self.names():
            known = ", ".join(self.names()) or "none yet"
            raise TresError(f"no crawl is named {printable(name)[:60]!r}; there are: {known}")
        return self.folder / name

    def job(self, name: str) -> Path:
        """Return the JOBDIR of a crawl."""
        return self.place(name) / "job"

    def record(self, name: str) -> Path:
        """Return the file of a run; raise TresError if nothing is written yet."""
        if not self.has_record(name):
            raise TresError(f"{name} has not written its file yet: {self.last_line(name)}")
        return self.job(name) / RECORD

    def has_record(self, name: str) -> bool:
        """Return whether a crawl has written its file, as it does when its topic is loaded."""
        return (self.job(name) / RECORD).is_file()

    def is_running(self, name: str) -> bool:
        """Return whether a crawl runs."""
        return name in self._running and self._running[name].poll() is None

    def start(
        self, name: str, seeds: Sequence[str], topic: str, keywords: Sequence[str], pages: int
    ) -> None:
        """Start a crawl; raise TresError at anything that is not allowed."""
        if not NAME.fullmatch(name):
            raise TresError("name must have 1 to 40 lower-case letters, digits and hyphens")
        place = self.folder / name
        if place.exists() or place.is_symlink():
            raise TresError(f"{name} exists: resume it, or give another name")
        if not 1 <= pages <= self.most_pages:
            raise TresError(f"pages must be from 1 to {self.most_pages:,}")
        if bool(topic) == bool(keywords):
            raise TresError("give either topic or keywords")
        if topic and topic not in topics():
            raise TresError(f"topic must be one of {', '.join(topics())}; or give keywords")
        lines = _checked_seeds(seeds), _checked_keywords(keywords)
        self._check_room()
        place.mkdir(parents=True)
        for file, each in zip(("seeds.txt", "keywords.txt"), lines, strict=True):
            (place / file).write_text("\n".join([*each, ""]), encoding="utf-8")
        about = {"topic": topic, "pages": pages}
        (place / "crawl.json").write_text(json.dumps(about), encoding="utf-8")
        self._launch(name, topic, pages)

    def resume(self, name: str) -> None:
        """Resume a crawl that was stopped."""
        place = self.place(name)
        if self.is_running(name):
            raise TresError(f"{name} runs already")
        self._check_room()
        about = json.loads((place / "crawl.json").read_text(encoding="utf-8"))
        self._launch(name, str(about["topic"]), whole(1, self.most_pages)(str(about["pages"])))

    def stop(self, name: str) -> None:
        """Stop a crawl as Ctrl-C does, and wait for its end; it can be resumed."""
        self.place(name)
        if not self.is_running(name):
            raise TresError(f"{name} does not run")
        process = self._running.pop(name)
        process.send_signal(signal.SIGINT)
        self._await_end(process)

    def close(self) -> None:
        """Stop all crawls."""
        running = [name for name in self._running if self.is_running(name)]
        for name in running:
            self._running[name].send_signal(signal.SIGINT)  # all at once: they end side by side
        for name in running:
            self._await_end(self._running.pop(name))

    def last_line(self, name: str) -> str:
        """Return the last line of a crawl's log."""
        log = self.place(name) / "log.txt"
        text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        return printable(text.strip().rpartition("\n")[2])[:300]

    @staticmethod
    def _await_end(process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()  # a JOBDIR survives that
            process.wait()

    def _check_room(self) -> None:
        running = [name for name in self._running if self.is_running(name)]
        if len(running) >= self.most_running:
            raise TresError(f"{', '.join(running)} still run: stop one or wait")

    def _launch(self, name: str, topic: str, pages: int) -> None:
        place = (self.folder / name).resolve()
        words = [topic] if topic else ["--keywords", str(place / "keywords.txt")]
        given = {"pages": str(pages), "output": str(place / "output.jsonl"), **self.arguments}
        options = ["--jobdir", str(place / "job")]
        options += [part for each in given.items() for part in ("-a", "=".join(each))]
        with (place / "log.txt").open("ab") as log:
            self._running[name] = subprocess.Popen(  # noqa: S603 - a list of words, no shell
                [*TRES, "crawl", *words, f"@{place / 'seeds.txt'}", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C to the server is not theirs
            )


def _checked_seeds(seeds: Sequence[str]) -> list[str]:
    """Return the seeds as canonical URLs of the web; raise TresError."""
    if not 1 <= len(seeds) <= MOST_SEEDS:
        raise TresError(f"give 1 to {MOST_SEEDS} seeds")
    found = []
    for seed in seeds:
        url = canonicalise(seed)
        if url is None or not url.startswith(("http://", "https://")):
            raise TresError(f"seed {printable(seed)[:100]!r} must be a URL of http or https")
        found.append(url)
    return found


def _checked_keywords(keywords: Sequence[str]) -> list[str]:
    """Return the keywords, each of which is one line of words; raise TresError."""
    if len(keywords) > MOST_KEYWORDS:
        raise TresError(f"give at most {MOST_KEYWORDS} keywords")
    for keyword in keywords:
        if not KEYWORD.fullmatch(keyword):
            raise TresError(f"keyword {printable(keyword)[:60]!r} must be a few words")
    return [*keywords]
