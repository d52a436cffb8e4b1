"""Where the topic packs lie that ship: beside the package in a checkout, in it once installed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

VECTORS: Final = Path("vectors", "english.npz")  # in a folder of packs

_unpacked: list[TemporaryDirectory[str]] = []  # removed when the process ends


@cache
def shipped_models() -> Path:
    """Return the folder of the packs that ship; out of a zipped egg they are unpacked first."""
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
