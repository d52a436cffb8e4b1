"""Fits the link model to each experience and to some earlier ones again."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tres_scrapy.agent.resumption import random_state, restore_random
from tres_scrapy.config.link_option import LinkOptions
from tres_scrapy.links.model import LinkModel, Links

NEW: Final = 4  # a replay at each step for so many experiences: the first few are not overlearned


class LinkTrainer:
    """Keeps the last experiences of a link model and lets it learn from them."""

    def __init__(self, model: LinkModel, options: LinkOptions, seed: int) -> None:
        self.seen = 0  # experiences
        self.kept: list[tuple[Links, float]] = []  # the last, as a ring
        self._model = model
        self._options = options
        self._random = np.random.default_rng(seed)

    def keep(self, link: Links, reward: float) -> None:
        """Keep an experience to learn it again."""
        if len(self.kept) < self._options.replay_capacity:
            self.kept.append((link, reward))
        else:
            self.kept[self.seen % len(self.kept)] = link, reward
        self.seen += 1

    def learn(self, link: Links, reward: float, *, replays: bool = True) -> None:
        """Learn from the experience that was just kept, and, if `replays`, from earlier ones."""
        self._model.gain(link)
        self._model.fit(link, reward)
        count = min(self._options.replays, self.seen // NEW) if replays else 0
        for number in self._random.integers(len(self.kept), size=count).tolist():
            self._model.fit(*self.kept[number])

    def counts(self) -> dict[str, Any]:
        """Return how many experiences were seen, and the state of the random choices."""
        return {"seen": self.seen, "random": random_state(self._random).decode()}

    def restore(self, counts: dict[str, Any]) -> int:
        """Load the random choices of `counts`; return how many experiences were seen."""
        restore_random(self._random, counts["random"].encode())
        return int(counts["seen"])
