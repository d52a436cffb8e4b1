"""The agent of a shard: it notes experiences, and another process learns from them for all."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.agent.q_learner import QLearner
from tres_scrapy.cluster.transition import WeightUpdate
from tres_scrapy.cluster.transition_log import TransitionLog
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import ACTION, FEATURES, LINK, STATE
from tres_scrapy.links.code import Codes, silent, url_codes
from tres_scrapy.links.model import known_of

_NOTHING: Final = np.zeros((0, len(FEATURES)), dtype=np.float32)
AWAY: Final = 5  # links of a page to other shards that its lesson has as candidates


class ActorLinkLearner(LinkLearner):
    """Rates links with weights that are learned elsewhere.

    Until they come, it learns from its own experiences.
    """

    def __init__(self, notebook: TransitionLog, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._notebook = notebook
        self._away = 0.0  # highest P(relevant) of the links of the page that is booked

    def note_away(self, page: int, links: Outlinks) -> None:
        """Rate the links of a page to domains of other shards, and note the best."""
        x = self._features_away(page, links) if links.urls else _NOTHING
        self._away = float(x[:, LINK].max(initial=0.0))
        self._notebook.note_away(x[np.argsort(-x[:, LINK], kind="stable")[:AWAY]])

    def expand(self, page: int, outlinks: Rows, away: float = 0.0) -> None:
        """Note what a fetched page leads to, in all shards."""
        super().expand(page, outlinks, max(away, self._away))

    def observe(self, experience: Experience) -> None:
        """Note an experience and learn from it."""
        link = self._remember(experience)
        self._notebook.note_link(link.known[0])
        self.model.gain(link)
        self.model.fit(link, experience.reward)

    def codes_of(self, row: int) -> Codes:
        """Return what the link of a row says."""
        return self._codes(np.array([row]))[0]

    def take(self, taught: WeightUpdate) -> None:
        """Rate links from now on by what was learned."""
        self.model.weights[taught.where] = taught.weights
        self.model.squares[taught.where] = taught.squares
        self.model.precisions[taught.where] = taught.precisions

    def _features_away(self, page: int, links: Outlinks) -> NDArray[np.float32]:
        """Return x(s, a) [n, 9] of links, as if their domains were new."""
        x = np.full((len(links.urls), len(FEATURES)), 0.5, dtype=np.float32)
        x[:, STATE], x[:, ACTION] = self._store.path_to(page).features, links.actions
        none = np.zeros(len(x), dtype=np.float32)
        codes, owner = url_codes(links.urls)
        cues = silent(len(x)) if links.cues is None else links.cues
        owners = np.concatenate([owner, np.repeat(np.arange(len(x)), cues.counts)])
        read = self.model.read(known_of(x, none, none), np.concatenate([codes, cues.codes]), owners)
        x[:, LINK] = self.model.estimate(read).probability
        return x


class ActorQLearner(QLearner):
    """Computes Q with a network that is trained elsewhere."""

    def __init__(self, notebook: TransitionLog, *arguments: Any, **more: Any) -> None:
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

    def take(self, taught: WeightUpdate) -> None:
        """Compute Q from now on as was learned; raise ValueError if the network does not fit."""
        if len(taught.parameters) != len(self._agent.online.parameters):
            raise ValueError("the learner has another network than this shard")
        self._agent.online.parameters[:] = taught.parameters
        self._agent.updates = taught.updates
