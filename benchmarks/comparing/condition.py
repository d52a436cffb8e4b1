"""What all runs in one directory of results have in common."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from comparing.result import Result, Run
from comparing.simulation import World
from tres_scrapy.config.config import Config
from tres_scrapy.config.declaration import PREFIX
from tres_scrapy.crawl.assembly import require_pack
from tres_scrapy.topic.shipped import TOPIC_FILE
from tres_scrapy.url.message import TresError
from tres_scrapy.url.whole_file import sha256, whole_file

FILE: Final = "conditions.json"
# The place of a file does not affect results; input files are recorded by their hash.
PLACES: Final = {"models", "output", "web_log", "web_data", "web_labels"}
PACKS: Final = "packs"
LABELS: Final = "labels"
TOPIC: Final = "{topic}"

Crawl = Callable[[Run, Callable[[int], None]], Result]


@dataclass(frozen=True)
class Conditions:
    """The web, and the settings of every run, as text.

    `data` holds the documents of the web. `labels` is the file of a recorded web's relevant pages,
    with {topic} in place of the topic.
    """

    web: str
    data: Path | None
    settings: Mapping[str, str]
    user_agent: str
    labels: str = ""

    def settings_of(self, run: Run) -> dict[str, str]:
        """Return the settings of the crawl that does this run."""
        own: dict[str, object] = {
            "web": run.web,
            "topic": run.topic,
            "web_labels": self.labels.replace(TOPIC, run.topic),
            "web_seed": run.seed,
            "seed": run.start,
            "random_seed": run.seed,
            "policy": run.policy,
            "max_per_domain": run.cap,
            "pages": run.pages,
        }
        if self.data is not None:
            own["web_data"] = self.data
        return {**self.settings, **{PREFIX + name.upper(): str(own[name]) for name in own}}

    def config(self, run: Run) -> Config:
        """Return the configuration of a run; raise ConfigError if a setting is wrong."""
        return Config.from_settings(self.settings_of(run))

    def open(self, run: Run) -> Crawl:
        """Return a function that does this run and all other runs on the same world."""
        return partial(self._simulate, World(self.config(run), user_agent=self.user_agent))

    def _simulate(self, world: World, run: Run, progress: Callable[[int], None]) -> Result:
        return world.crawl(self.config(run), progress)

    def note(self, directory: Path, runs: Sequence[Run], *, is_new: bool) -> None:
        """Write the conditions beside the results, or compare them with the file that is there.

        Raise TresError if they differ, or if old results have no file of conditions.
        """
        path, facts = directory / FILE, self._facts()
        parts: dict[str, Any] = {PACKS: self._packs(runs), LABELS: self._labels(runs)}
        if path.exists():
            found = _read(path)
            for name, value in facts.items():
                _compare(directory, name, found.get(name), value)
            for part, values in parts.items():
                known = found.get(part) or {}
                for name, value in values.items():
                    _compare(directory, f"{part} of {name}", known.get(name, value), value)
                parts[part] = known | values
        elif not is_new:
            raise TresError(f"{path} is missing, but there are results: give another --output")
        with whole_file(path) as file:
            file.write(json.dumps({**facts, **parts}, indent=2).encode())

    def _packs(self, runs: Sequence[Run]) -> dict[str, str]:
        """Return the hashes of the packs that the runs use, by name."""
        places = {require_pack(self.config(run)) for run in runs}
        return {place.name: sha256(place / TOPIC_FILE) for place in sorted(places)}

    def _labels(self, runs: Sequence[Run]) -> dict[str, str | None]:
        """Return the hashes of the files of labels that the runs use, by topic."""
        files = {run.topic: self.config(run).web.labels for run in runs}
        return {topic: sha256(path) if path else None for topic, path in files.items()}

    def _facts(self) -> dict[str, Any]:
        data = self.data and f"{self.data.name}, SHA-256 {_hash(self.data)}"
        config = Config.from_settings(self.settings)
        every = {_argument(name): str(value) for name, value in config.values().items()}
        return {
            "web": self.web,
            "data": data,
            "user agent": self.user_agent,
            "settings": {
                name: value
                for name, value in self.settings.items()
                if _argument(name) not in PLACES
            },
            "configuration": {name: each for name, each in every.items() if name not in PLACES},
        }

    def __str__(self) -> str:
        settings = "".join(f", {name}={value}" for name, value in sorted(self.settings.items()))
        return f"{self.web} web, crawled in one process, without HTTP{settings}"


def _read(path: Path) -> dict[str, Any]:
    """Return the conditions in a file; raise TresError if it is damaged."""
    try:
        found = json.loads(path.read_bytes())
        if not isinstance(found, dict):
            raise TypeError("it contains no conditions")
        for part in (PACKS, LABELS):
            if not isinstance(found.get(part) or {}, dict):
                raise TypeError(f"its {part} are not by name")
    except (ValueError, TypeError) as error:
        raise TresError(f"{path} is damaged ({error}): give another --output") from None
    return found


def _compare(directory: Path, name: str, there: object, value: object) -> None:
    if isinstance(there, dict) and isinstance(value, dict):
        differ = [key for key in there.keys() | value if there.get(key) != value.get(key)]
        there, value = ({key: each.get(key) for key in sorted(differ)} for each in (there, value))
    if there != value:
        raise TresError(
            f"the results in {directory} have the {name} {there!r}, these would have {value!r}: "
            "give another --output"
        )


def _argument(setting: str) -> str:
    return setting.removeprefix(PREFIX).lower()


def _hash(data: Path) -> str:
    """Return the SHA-256 of a file, or one of all files in a folder."""
    if data.is_file():
        return sha256(data)
    parts = [f"{path.name} {sha256(path)}" for path in sorted(data.glob("*")) if path.is_file()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
