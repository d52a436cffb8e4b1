"""TRES in one of several shards: another process learns from the experiences of all."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.q_learner import QLearner
from tres_scrapy.agent.tres import TOP_READ, TresPolicy
from tres_scrapy.cluster.transition import TransitionLog, WeightUpdate
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.feature import ACTION, FEATURES, LINK, STATE
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.links.code import Codes, silent, url_codes
from tres_scrapy.links.model import known_of

_UNKNOWN = 1.0  # worth of seeds: they are fetched before all other links
_BEST = 4  # links that say what the next pages of a shard are worth
_NOTHING: Final = np.zeros((0, len(FEATURES)), dtype=np.float32)
AWAY: Final = 5  # links of a page to other shards that its transition has as candidates


class ActorPolicy(TresPolicy):
    """Chooses as TRES does, by what the learner of all shards has learned.

    The tree, and what is remembered of hosts, are the shard's own.
    """

    _learner: ActorQLearner
    _links: ActorLinkLearner

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        self._log = TransitionLog(self.features)
        super().__init__(store, setup)

    @property
    def noted(self) -> int:
        """The number of experiences that can be sent as transitions."""
        return len(self._log)

    def transitions(self, first: int, most: int) -> list[bytes]:
        """Return transitions for the learner from number `first` on, at most so many."""
        return self._log.transitions(first, most, self._links.codes_of)

    def take(self, update: WeightUpdate) -> None:
        """Choose from now on by what was learned."""
        self._learner.take(update)
        self._links.take(update)

    def note_away(self, page: int, links: Outlinks) -> None:
        """Note the links of a page to domains of other shards, before `expand` for the page."""
        self._links.note_away(page, links)

    def worth(self, available: Availability = ANY_HOST) -> float:
        """Return the mean Q of the best links that can be fetched now, 1 if only seeds may wait.

        If all their hosts are busy, return that of the best links once they are free.
        """
        rows = self._best.ready(available)
        if not len(rows) and not len(rows := self._best.ready()):
            return _UNKNOWN
        rows = rows[np.argsort(-self._store["probability"].take(rows), kind="stable")[:TOP_READ]]
        return float(np.sort(self._learner.value(self.features(rows)))[-_BEST:].mean())

    def _make_learner(self, setup: PolicyInputs) -> ActorQLearner:
        arguments = self._store, self.features, setup, self._random
        return ActorQLearner(self._log, *arguments, prior=True)

    def _make_links(self, setup: PolicyInputs) -> ActorLinkLearner:
        arguments = self._store, setup.links, setup.seed, setup.link_prior
        return ActorLinkLearner(self._log, *arguments)


class ActorLinkLearner(LinkLearner):
    """Rates links with weights that are learned elsewhere.

    Until they come, it learns from its own experiences.
    """

    def __init__(self, log: TransitionLog, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._log = log

    def note_away(self, page: int, links: Outlinks) -> None:
        """Rate the links of a page to domains of other shards, and note the best."""
        x = self._features_away(page, links) if links.urls else _NOTHING
        self._log.note_away(x[np.argsort(-x[:, LINK], kind="stable")[:AWAY]])

    def observe(self, experience: Experience) -> None:
        """Note an experience and learn from it."""
        link = self._remember(experience)
        self._log.note_link(link.known[0])
        self.model.gain(link)
        self.model.fit(link, experience.target)

    def codes_of(self, row: int) -> Codes:
        """Return what the link of a row says."""
        return self._codes(np.array([row]))[0]

    def take(self, update: WeightUpdate) -> None:
        """Rate links from now on by what was learned."""
        self.model.weights[update.where] = update.weights
        self.model.squares[update.where] = update.squares
        self.model.precisions[update.where] = update.precisions

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

    def __init__(self, log: TransitionLog, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._log = log

    def remember(self, experience: Experience, outlinks: Rows) -> None:
        """Note an experience and its page's outlinks."""
        self._log.add(experience, self._earned(experience), outlinks)

    def note_choice(self, row: int) -> None:
        """Add the chosen row to A~ of the experiences since the choice before."""
        self._log.note_choice(row)

    def learn(self) -> float | None:
        """Take no gradient step: the learner of the crawl does."""
        return None

    def restore(self, past: Past, state: dict[str, bytes]) -> None:
        """Load experiences and a saved state; raise ValueError if the state does not fit."""
        super().restore(past, state)
        self._log.restore(past, self._earned_before(past))

    def take(self, update: WeightUpdate) -> None:
        """Compute Q from now on as was learned; raise ValueError if the network does not fit."""
        if len(update.parameters) != len(self._agent.online.parameters):
            raise ValueError("the learner has another network than this shard")
        self._agent.online.parameters[:] = update.parameters
        self._agent.updates = update.updates
