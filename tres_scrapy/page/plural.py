"""The form of a noun that fits a count."""

from __future__ import annotations

from typing import Final

IRREGULAR: Final = {"leaf": "leaves"}


def plural(count: float, noun: str) -> str:
    """Return a noun in the singular for a count of 1, else in the plural."""
    *before, last = noun.rpartition(" ")
    return noun if count == 1 else "".join([*before, IRREGULAR.get(last, f"{last}s")])
