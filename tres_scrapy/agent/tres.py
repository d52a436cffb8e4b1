"""TRES: Tree-Frontier sampling evaluated by a Double DQN (P 2.4, 2.6, Appendix B)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import (
    NO_TEXT,
    Choice,
    Decision,
    Experience,
    PageText,
    Past,
    Policy,
)
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.agent.q_learner import QLearner
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.ledger import ANY_HOST, Availability
from tres_scrapy.frontier.queue import Shortlist
from tres_scrapy.frontier.sampling import (
    Representatives,
    random_state,
    representatives,
    restore_random,
)
from tres_scrapy.frontier.store import Eligibility, SampleStore
from tres_scrapy.frontier.tree import Rule, TreeFrontier

SHORTLIST = 1_000  # links with the highest P(relevant) that are rated with the drawn ones
TOP_READ = 30  # of all these, whose codes are read again
RATING_PERIOD = 10  # experiences between two turns in which other samples are rated again
HASTE = 20  # experiences with such a turn each, after the topic has changed
MAX_DRAWN = 4_000  # limit of samples for a choice, unless there are more leaves


class TresPolicy(Policy):
    """Evaluates Q for representatives of each leaf and fetches the best (Algorithms 2, 3).

    In the exploration phase it fetches a random representative.
    """

    is_resumable = True
    learns_q = True

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        self.tree = TreeFrontier(self.features, setup.tree)
        self._store = store
        self._random = np.random.default_rng(setup.seed)
        self._learner = self._make_learner(setup)
        self._links = self._make_links(setup)
        self._best = Shortlist(store, SHORTLIST)
        self._haste = 0  # experiences in which many samples are rated again
        self.waits = False
        self._last: tuple[Ranking, int] | None = None  # with the row that was chosen of it

    @property
    def rules(self) -> Sequence[Rule]:
        """The splits of the tree."""
        return self.tree.rules

    @property
    def link_learner(self) -> LinkLearner | None:
        """What has learned from links, None with `link_model=0`."""
        return self._links

    def features(self, rows: Rows) -> NDArray[np.float32]:
        """Return x(s, a) [n, 9] as tree and agent use it."""
        return self._store.features(rows)

    def value(self, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return Q of any x [n, 9] as [n]."""
        return self._learner.value(x)

    def observe(self, experience: Experience) -> None:
        """Add the experience to the tree, whose leaf may split, and to the link model."""
        self._learner.steps += 1
        if self._links is not None:
            self._links.observe(experience)
            if self._haste or self._learner.steps % RATING_PERIOD == 0:
                self._haste = max(0, self._haste - 1)
                count = RATING_PERIOD * self._links.options.rescored
                self._best.offer(self._links.rate_again(count))
        self.tree.add_experience(experience.x, experience.reward)

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Add the experience to the replay and the outlinks to the tree."""
        self._rate(outlinks)
        if self._links is not None:
            self._links.expand(experience.row, outlinks)
        self._learner.remember(experience, outlinks)
        self.tree.insert(outlinks)

    def readmit(self, rows: Rows) -> None:
        """Insert samples into the leaves that match their current features."""
        self._last = None
        self._rate(rows)
        self.tree.insert(rows)

    def revise(self, rows: Rows) -> None:
        """Rate samples again; each stays in its leaf, as after a change of live features."""
        self._last = None
        self._rate(rows)

    def relearn(self, lessons: Mapping[int, tuple[float, float]]) -> None:
        """Correct the lessons of the link model; the replay keeps the rewards of then."""
        if self._links is not None and self._links.relearn(lessons):
            self._haste = HASTE

    def learn(self) -> float | None:
        """Take the gradient step of the Double DQN if one is due."""
        return self._learner.learn()

    def select(self, available: Availability = ANY_HOST) -> Decision | None:
        """Return the best representative by its bound, or any while exploring."""
        self.waits = False
        if (decision := self._select_again(available)) is not None:
            return decision
        exploring = self._learner.exploring
        each = 1 if exploring else self._learner.options.representatives
        drawn = representatives(
            self.tree.pool, self._store, self._random, available, each=each, most=MAX_DRAWN
        )
        if self._links is not None:
            return self._select_link(self._links, drawn, available)
        if not len(drawn.rows):
            return None
        q_values = q_value = None
        if exploring:
            best = int(self._random.integers(len(drawn.rows)))
        else:
            q_values = self._learner.rate(self.features(drawn.rows))
            best = int(np.argmax(q_values))
            q_value = float(q_values[best])
        leaf, row = drawn.take(best, self.tree.pool)
        self._learner.note_choice(row)
        choice = Choice(self.tree.splits, drawn.leaves, drawn.rows, q_values, q_values)
        return Decision(row, leaf, q_value, choice=choice)

    def _select_link(
        self, links: LinkLearner, drawn: Representatives, available: Availability
    ) -> Decision | None:
        """Return the best of the drawn samples and of the best by P(relevant) of the link.

        The less the last fetches brought, the more hope lies in hosts that are hardly known.
        """
        listed = self._best.ready(available)
        alone = np.flatnonzero(~self._best.has(drawn.rows))
        rows = np.concatenate([drawn.rows[alone], listed])
        if not (count := len(rows)):
            return None
        rows = np.concatenate([rows, self._best.soon(available, TOP_READ)])
        x = links.refresh(rows, TOP_READ)
        self._best.offer(drawn.rows)
        q_values = self._learner.rate(x)
        bounds = q_values + links.bonus(rows)
        leaves = [drawn.leaves[alone], self.tree.leaf_of(x[len(alone) :])]
        ranking = Ranking(
            self.tree.splits,
            np.concatenate(leaves),
            rows,
            q_values,
            bounds,
            np.arange(len(rows)) < count,
            later=float(bounds[count:].max(initial=-np.inf)),
            further=self._store.ledger.leased // PAGES_A_CHOICE,
        )
        return self._decide(links, ranking)

    def _select_again(self, available: Availability) -> Decision | None:
        """Return the best that is left of the last choice, None if all are to be rated again."""
        if self._last is None or self._links is None:
            return None
        ranking, row = self._last
        self._last = None
        after = ranking.after(self._store, row, available)
        return None if after is None else self._decide(self._links, after)

    def _decide(self, links: LinkLearner, ranking: Ranking) -> Decision | None:
        """Return the best of a ranking, None if it is better to wait."""
        best = ranking.best(self._store.priorities)
        self.waits = ranking.later - float(ranking.bounds[best]) > MIN_GAIN
        if self.waits:
            return None
        row, leaf = int(ranking.rows[best]), int(ranking.leaves[best])
        self._last = ranking, row
        self._learner.note_choice(row)
        ready = ranking.ready
        choice = Choice(
            ranking.splits,
            ranking.leaves[ready],
            ranking.rows[ready],
            ranking.q_values[ready],
            ranking.bounds[ready],
            links.evidence(row),
        )
        return Decision(row, leaf, float(ranking.q_values[best]), choice=choice)

    def _make_learner(self, setup: PolicyInputs) -> QLearner:
        arguments = self._store, self.features, setup, self._random
        return QLearner(*arguments, prior=setup.links.enabled)

    def _make_links(self, setup: PolicyInputs) -> LinkLearner | None:
        if not setup.links.enabled:
            return None
        return LinkLearner(self._store, setup.links, setup.seed, setup.link_prior)

    def _rate(self, rows: Rows) -> None:
        if self._links is not None:
            self._links.rate(rows)
            self._best.offer(rows)

    def state(self) -> dict[str, bytes]:
        """Return the state of the agent and of the random choices."""
        links = {} if self._links is None else self._links.state()
        return {"random": random_state(self._random), **self._learner.state(), **links}

    def restore(
        self, past: Past, rules: Sequence[Rule], state: dict[str, bytes], pending: Rows
    ) -> None:
        """Load the past of a policy of this kind.

        Each sample enters the leaf that matches its current features.
        """
        if self._links is not None:
            self._links.restore(past, state)
            self._best.offer(pending)
        self.tree.restore(rules, past.x, past.rewards)
        self.tree.insert(pending)
        self._learner.restore(past, state)
        restore_random(self._random, state["random"])

    def figures(self) -> dict[str, float | str]:
        """Report the tree's and the agent's state."""
        return {
            "leaves": len(self.tree),
            "splits": self.tree.splits,
            **self._learner.figures(),
        }


MIN_GAIN: Final = 0.1  # relevant pages: a link must be worth so much more to be waited for
PAGES_A_CHOICE: Final = 4  # under way, for which a ranking serves one more choice


class Ranking(NamedTuple):
    """Samples [n] as they were rated for a choice; `ready` [n] marks those that can be chosen now.

    The more pages are under way, the less a choice knows of what they will bring, and the less it
    matters that the next choices do not know of the last page either. So a ranking serves
    1 + `further` choices, on different domains. With one request at a time it serves one, as in
    the paper.

    `splits` are those of the tree that `leaves` belong to. `later` is the highest bound of samples
    whose hosts are soon free. `domains` are those that it has served.
    """

    splits: int
    leaves: NDArray[np.int64]
    rows: Rows
    q_values: NDArray[np.float32]
    bounds: NDArray[np.float32]  # Q with the bonus of the host
    ready: NDArray[np.bool_]
    later: float
    further: int
    domains: tuple[int, ...] = ()

    def best(self, priorities: Mapping[int, int]) -> int:
        """Return the place of the sample with the highest bound of those that are ready.

        Of equal ones it is the first with the highest priority; `priorities` has those that are
        not 0, by row.
        """
        bounds = np.where(self.ready, self.bounds, -np.inf)
        best = int(np.argmax(bounds))
        if not priorities:
            return best
        equal = np.flatnonzero(bounds == bounds[best]).tolist()
        return max(equal, key=lambda place: priorities.get(int(self.rows[place]), 0))

    def after(
        self,
        store: SampleStore,
        row: int,
        available: Availability = ANY_HOST,
    ) -> Self | None:
        """Return the ranking for the choice after that of `row`, None if all is to be rated again.

        Samples on the domain of `row` are worth less than they were. If one of them could be
        fetched and might be clearly better than all that is ready, rating again decides.
        """
        further = min(self.further, store.ledger.leased // PAGES_A_CHOICE)
        if not further:
            return None
        domains = (*self.domains, store["domain"][row])
        left = store.is_pending(self.rows)
        free = left & (store.eligibility(self.rows, available) == Eligibility.READY)
        ready = free & ~np.isin(store["domain"].take(self.rows), domains)
        if not ready.any() or self.bounds[free].max() > self.bounds[ready].max() + MIN_GAIN:
            return None
        later = -np.inf
        if available.soon:
            soon_free = left & np.isin(store["host"].take(self.rows), available.soon)
            later = float(self.bounds[soon_free].max(initial=-np.inf))
        return self._replace(ready=ready, later=later, further=further - 1, domains=domains)
