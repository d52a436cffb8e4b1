"""Rotation of browser contexts: each serves a fixed number of pages and is then closed."""

from __future__ import annotations

from typing import Final

PAGES: Final = 50  # per context; cookies and other data of sites end with it


class Rotation:
    """Chooses the context for each page, and reports when a context is no longer needed."""

    def __init__(self, pages: int = PAGES) -> None:
        self._pages = pages
        self._turns: dict[str, int] = {}  # by kind of context, pages opened in all, less one
        self._open: dict[str, int] = {}  # by context name, pages open in it

    def enter(self, kind: str) -> str:
        """Return the name of the context for one more page of a kind."""
        turn = self._turns[kind] = self._turns.get(kind, -1) + 1
        name = f"{kind}-{turn // self._pages}"
        self._open[name] = self._open.get(name, 0) + 1
        return name

    def leave(self, kind: str, name: str) -> bool:
        """Record that a page was closed; return whether to close its context too."""
        self._open[name] -= 1
        if self._open[name]:
            return False
        del self._open[name]
        return f"{kind}-{(self._turns[kind] + 1) // self._pages}" != name
