"""What a target of the fuzzer is."""

from __future__ import annotations

from random import Random
from typing import Final, Protocol

LONGEST: Final = 500  # characters of a line that says what is wrong


class Target(Protocol):
    """A reader of what strangers write; `share` of all inputs are its own."""

    name: str
    share: float

    def draw(self, random: Random) -> str:
        """Return an input."""

    def check(self, text: str) -> None:
        """Raise unless the input is read as it must be."""


def check_line(error: Exception) -> None:
    """Make sure that an error tells a user what is wrong in one line."""
    said = str(error)
    assert said.isprintable(), said
    assert len(said) < LONGEST, len(said)
