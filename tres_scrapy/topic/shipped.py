"""The places of topic packs: `models/` in the working directory, and the shipped packs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

TOPIC_FILE: Final = "topic.toml"  # makes a directory a pack
HERE: Final = Path("models")  # where `tres train` writes
VECTORS: Final = Path("vectors", "english.npz")  # relative to a folder of packs

_unpacked: list[TemporaryDirectory[str]] = []  # removed when the process ends


def packs(models: Path | None = None) -> dict[str, Path]:
    """Return the directories of the packs in a folder, by name.

    Without a folder, return the shipped packs and those in models/ here, which take precedence.
    """
    places = [shipped_models(), HERE] if models is None else [models]
    found = (path.parent for place in places for path in place.glob(f"*/{TOPIC_FILE}"))
    return {directory.name: directory for directory in found}


def topics(models: Path | None = None) -> list[str]:
    """Return the names of the packs that are topics, in order.

    The pack TOPIC-svm is no topic: some policies judge pages of TOPIC with it.
    """
    found = packs(models)
    return sorted(name for name in found if name.removesuffix("-svm") not in found.keys() - {name})


@cache
def shipped_models() -> Path:
    """Return the folder of the shipped packs; they are unpacked first from a zipped egg."""
    package = files("tres_scrapy")
    if not isinstance(package, Path):
        _unpacked.append(TemporaryDirectory(prefix="tres-models-"))
        return _unpack(package / "models", Path(_unpacked[-1].name))
    inside = package / "models"
    return inside if inside.is_dir() else package.parent / "models"


def _unpack(source: Traversable, target: Path) -> Path:
    target.mkdir(exist_ok=True)
    for each in source.iterdir():
        if each.is_dir():
            _unpack(each, target / each.name)
        else:
            (target / each.name).write_bytes(each.read_bytes())
    return target
