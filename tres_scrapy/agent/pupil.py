"""The agent of a shard: it notes experiences, and another process learns from them for all."""

from __future__ import annotations

from typing import Any

import numpy as np

from tres_scrapy.agent.lesson import Taught
from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.notebook import Notebook
from tres_scrapy.agent.q_learner import QLearner
from tres_scrapy.crawl.policy import Experience
from tres_scrapy.crawl.resumption import Past
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.links.code import Codes


class PupilLinkLearner(LinkLearner):
    """Rates links with weights that are learned elsewhere.

    Until they come, it learns from its own experiences.
    """

    def __init__(self, notebook: Notebook, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._notebook = notebook

    def observe(self, experience: Experience) -> None:
        """Note an experience and learn from it."""
        link = self._remember(experience)
        self._notebook.note_link(link.known[0])
        self.model.gain(link)
        self.model.fit(link, experience.reward)

    def codes_of(self, row: int) -> Codes:
        """Return what the link of a row says."""
        return self._codes(np.array([row]))[0]

    def take(self, taught: Taught) -> None:
        """Rate links from now on by what was learned."""
        self.model.weights[taught.where] = taught.weights
        self.model.squares[taught.where] = taught.squares
        self.model.precisions[taught.where] = taught.precisions


class PupilQLearner(QLearner):
    """Computes Q with a network that is trained elsewhere."""

    def __init__(self, notebook: Notebook, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._notebook = notebook

    def remember(self, experience: Experience, outlinks: Rows) -> None:
        """Note an experience and its page's outlinks."""
        row, x, reward = experience
        if self._ucb:
            self._confidence.add(x)
        self._notebook.add(row, x, self._earned(experience), reward, outlinks)

    def note_choice(self, row: int) -> None:
        """Add the chosen row to A~ of the experiences since the choice before."""
        self._notebook.note_choice(row)

    def learn(self) -> float | None:
        """Take no gradient step: the learner of the crawl does."""
        return None

    def restore(self, past: Past, state: dict[str, bytes]) -> None:
        """Load experiences and a saved state; raise ValueError if the state does not fit."""
        super().restore(past, state)
        self._notebook.restore(past, self._earned_before(past))

    def take(self, taught: Taught) -> None:
        """Compute Q from now on as was learned; raise ValueError if the network does not fit."""
        if len(taught.parameters) != len(self._agent.online.parameters):
            raise ValueError("the learner has another network than this shard")
        self._agent.online.parameters[:] = taught.parameters
        self._agent.updates = taught.updates
