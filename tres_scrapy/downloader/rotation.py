"""Browser contexts in turn: each serves so many pages and is closed with the last of them."""

from __future__ import annotations

from typing import Final

PAGES: Final = 50  # of a context: what a site leaves in it lives no longer


class Rotation:
    """Says in which context a page is opened, and which contexts nobody needs any more."""

    def __init__(self, pages: int = PAGES) -> None:
        self._pages = pages
        self._turns: dict[str, int] = {}  # by kind of context, pages begun in all
        self._open: dict[str, int] = {}  # by name of a context, pages open in it

    def enter(self, kind: str) -> str:
        """Return the name of the context for one more page of a kind."""
        turn = self._turns[kind] = self._turns.get(kind, -1) + 1
        name = f"{kind}-{turn // self._pages}"
        self._open[name] = self._open.get(name, 0) + 1
        return name

    def leave(self, kind: str, name: str) -> bool:
        """Note that a page is closed; return whether its context is to be closed too."""
        self._open[name] -= 1
        if self._open[name]:
            return False
        del self._open[name]
        return f"{kind}-{(self._turns[kind] + 1) // self._pages}" != name
