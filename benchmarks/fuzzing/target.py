"""The interface of a fuzzing target."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

LONGEST: Final = 500  # characters of an error message


class Target(Protocol):
    """Code that reads input from strangers; it gets a `share` of all inputs."""

    name: str
    share: float

    def draw(self, random: Random) -> str:
        """Return an input."""

    def check(self, text: str) -> None:
        """Raise an exception unless the input is read correctly."""


def check_line(error: Exception) -> None:
    """Check that an error message is one short line."""
    said = str(error)
    assert said.isprintable(), said
    assert len(said) < LONGEST, len(said)
