"""Where the files of a crawl go: all beside the JSON lines, under one name."""

from __future__ import annotations

from pathlib import Path


def beside(path: Path, ending: str) -> Path:
    """Return the name of another file of the same crawl: food.jsonl has food.warc.gz beside it."""
    return path.with_name(path.name.removesuffix(".jsonl") + ending)
