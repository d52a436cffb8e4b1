"""Names of a crawl's files: all in one folder, named like the JSON lines file."""

from __future__ import annotations

from pathlib import Path


def beside(path: Path, ending: str) -> Path:
    """Return the path of another file of the crawl: food.warc.gz, for example, for food.jsonl."""
    return path.with_name(path.name.removesuffix(".jsonl") + ending)
