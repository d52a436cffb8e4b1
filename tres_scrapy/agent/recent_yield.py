"""How well a crawl goes: the relevant share of its last fetches."""

from __future__ import annotations

from typing import Final

RECENT: Final = 30  # fetches that say how well the crawl goes


class RecentYield:
    """The relevant share of the last fetches, later ones weighing more; 0.5 before the first."""

    def __init__(self) -> None:
        self.value = 0.5

    def note(self, reward: float) -> None:
        """Note the reward of a fetch."""
        self.value += (reward - self.value) / RECENT
