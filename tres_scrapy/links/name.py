"""The texts of codes, so that people can read what the link model has learned."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Final

from tres_scrapy.links.code import BITS, CueGroup, Name

MOST_NAMES: Final = 40_000  # of a group


class Names:
    """The first texts of each group; of two texts with the same code, the first is kept."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}
        self._counts = [0] * len(CueGroup)

    def __len__(self) -> int:
        return len(self._texts)

    def learn(self, names: Iterable[Name]) -> None:
        """Keep the texts of new codes."""
        for code, text in names:
            if code not in self._texts and self._counts[code >> BITS] < MOST_NAMES:
                self._texts[code] = text if text.isprintable() else _printable(text)
                self._counts[code >> BITS] += 1

    def text(self, code: int) -> str | None:
        """Return the text of a code, None if it is not known."""
        return self._texts.get(code)

    def since(self, count: int) -> list[Name]:
        """Return all but the first `count` names, newest first."""
        return list(islice(reversed(self._texts.items()), len(self._texts) - count))


def _printable(text: str) -> str:
    return "".join(filter(str.isprintable, text))
