"""The words by which the user has called a command, for messages."""

from __future__ import annotations

from collections.abc import Sequence

PREFIX = "scrapy tres-"  # the program `tres` changes it


def called(command: str) -> str:
    """Return `scrapy tres-COMMAND` or `tres COMMAND`."""
    return f"{PREFIX}{command}"


def named(arguments: Sequence[str]) -> str:
    """Return the arguments that the user has given, for a message that says what to give."""
    return " ".join(map(repr, arguments)) or "nothing"
