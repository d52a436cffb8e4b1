"""The words by which the user has called a command, for messages."""

from __future__ import annotations

PREFIX = "scrapy tres-"  # the program `tres` changes it


def called(command: str) -> str:
    """Return `scrapy tres-COMMAND` or `tres COMMAND`."""
    return f"{PREFIX}{command}"
