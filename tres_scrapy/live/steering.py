"""The requests that the live page can make to a crawl."""

from __future__ import annotations

import logging
from typing import Final, Protocol

LONGEST: Final = 8_000  # characters of an input

logger = logging.getLogger(__name__)


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


def require_state(state: str, *states: str) -> None:
    """Raise ControlError unless the state of a crawl is one of `states`."""
    if state not in states:
        raise ControlError(f"The crawl is {state}")


def short(text: str) -> str:
    """Return an input; raise ControlError if it is too long."""
    if len(text) > LONGEST:
        raise ControlError(f"Too long: {LONGEST:,} characters at most")
    return text


def said(what: str) -> str:
    """Log what was done, and return it as a sentence."""
    logger.info("Live page: %s", what)
    return f"{what}."
