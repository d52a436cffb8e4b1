"""The requests that the live page can make to a crawl."""

from __future__ import annotations

from typing import Protocol


class ControlError(RuntimeError):
    """Says in one line why a request to a crawl is refused and what to do."""


class Steering(Protocol):
    """Steers a crawl; each method returns a sentence that says what it did.

    Raise ControlError if it cannot be done.
    """

    def pause(self) -> str:
        """Send no more requests; let those under way finish."""

    def resume(self) -> str:
        """Send requests again."""

    def stop(self) -> str:
        """End the crawl as Ctrl-C does."""

    def add_seed(self, text: str) -> str:
        """Fetch the seed URLs in a text next."""

    def change_max(self, text: str) -> str:
        """Change MAX, the pages per domain: 10, 5_2 or none."""
