"""TRES in a shard of a crawl on many machines: it learns together with the other shards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.tres import TOP, TresPolicy
from tres_scrapy.cluster.actor_learner import ActorLinkLearner, ActorQLearner
from tres_scrapy.cluster.transition import WeightUpdate
from tres_scrapy.cluster.transition_log import TransitionLog
from tres_scrapy.frontier.admission import Outlinks
from tres_scrapy.frontier.store import SampleStore

_UNKNOWN = 1.0  # worth of seeds: they are fetched before all other links
_BEST = 4  # links that say what the next pages of a shard are worth


class ActorPolicy(TresPolicy):
    """Chooses as TRES does, by what the learner of all shards has learned.

    The tree, and what is remembered of hosts, are the shard's own.
    """

    _learner: ActorQLearner
    _links: ActorLinkLearner

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        self._notebook = TransitionLog(self.features)
        super().__init__(store, setup)

    @property
    def noted(self) -> int:
        """The number of experiences that can be sent as lessons."""
        return len(self._notebook)

    def lessons(self, first: int, most: int) -> list[bytes]:
        """Return lessons for the learner from number `first` on, at most so many."""
        return self._notebook.lessons(first, most, self._links.codes_of)

    def take(self, taught: WeightUpdate) -> None:
        """Choose from now on by what was learned."""
        self._learner.take(taught)
        self._links.take(taught)
        self._yield.value = taught.recent

    def note_away(self, page: int, links: Outlinks) -> None:
        """Note the links of a page to domains of other shards, before `expand` for the page."""
        self._links.note_away(page, links)

    def worth(self, busy_hosts: Sequence[int] = ()) -> float:
        """Return the mean Q of the best links that can be fetched now, 1 if only seeds may wait.

        If all their hosts are busy, return that of the best links once they are free.
        """
        rows = self._best.ready(busy_hosts)
        if not len(rows) and not len(rows := self._best.ready()):
            return _UNKNOWN
        rows = rows[np.argsort(-self._store.rated(rows), kind="stable")[:TOP]]
        return float(np.sort(self._learner.value(self.features(rows)))[-_BEST:].mean())

    def _make_learner(self, setup: PolicyInputs) -> ActorQLearner:
        arguments = self._store, self.features, setup, self._random
        return ActorQLearner(self._notebook, *arguments, prior=True)

    def _make_links(self, setup: PolicyInputs) -> ActorLinkLearner:
        arguments = self._store, setup.links, setup.seed, setup.link_prior
        return ActorLinkLearner(self._notebook, *arguments)
