"""Learns from each experience what links say about the pages behind them, and what hosts bring."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.host_value import HostValues
from tres_scrapy.agent.policy import Experience, Past
from tres_scrapy.agent.trust import PRICE, Trust
from tres_scrapy.config.learning import LinkOptions
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.feature import LINK, PARENT_REWARD
from tres_scrapy.frontier.sampling import random_state, restore_random
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.links.code import CODES, Codes, url_codes
from tres_scrapy.links.model import (
    KNOWN,
    NO_PRIOR,
    Estimate,
    LinkEvidence,
    LinkModel,
    LinkPrior,
    Links,
    known_of,
    prior_of,
)

EXPERIENCES_A_REPLAY: Final = 4  # that were seen: the first few are not overlearned
CHECKPOINT: Final = 1_000  # experiences between two saved states
_CHUNK: Final = 5_000  # links scored at once
_RELEARNED: Final = 100  # lessons that are learned once more when the topic has changed, at most
_CHANGED: Final = 0.1  # change of what a lesson says, at least
_LINK: Final = np.dtype(
    [("logit", "f4"), ("variance", "f4"), ("fetched", "i4"), ("relevant", "f4")]
)

# A fetched sample, its reward, its number among the fetches of its host, whether it is a front page
_LESSON: Final = np.dtype([("row", "i4"), ("reward", "f4"), ("number", "i4"), ("front", "?")])


def all_earned(rows: Rows) -> NDArray[np.float32]:
    """Return that samples [n] keep all of their rewards."""
    return np.ones(len(rows), dtype=np.float32)


class LinkTrainer:
    """Keeps the last experiences of a link model and lets it learn from them.

    `earned` returns which share of their rewards samples [n] keep when they are learned again.
    """

    def __init__(
        self,
        model: LinkModel,
        options: LinkOptions,
        seed: int,
        earned: Callable[[Rows], NDArray[np.float32]] = all_earned,
    ) -> None:
        self.seen = 0  # experiences
        self.kept: list[tuple[Links, float]] = []  # the last, as a ring
        self._rows = np.zeros(options.replay_capacity, dtype=np.int64)
        self._earned = earned
        self._model = model
        self._options = options
        self._random = np.random.default_rng(seed)

    def keep(self, link: Links, reward: float, row: int = NO_PARENT) -> None:
        """Keep an experience to learn it again; `row` is its sample."""
        self._rows[self.seen % len(self._rows)] = row
        if len(self.kept) < self._options.replay_capacity:
            self.kept.append((link, reward))
        else:
            self.kept[self.seen % len(self.kept)] = link, reward
        self.seen += 1

    def learn(self, link: Links, reward: float, *, replays: bool = True) -> None:
        """Learn from the experience that was just kept, and, if `replays`, from earlier ones."""
        self._model.gain(link)
        self._model.fit(link, reward)
        count = min(self._options.replays, self.seen // EXPERIENCES_A_REPLAY) if replays else 0
        numbers = self._random.integers(len(self.kept), size=count)
        shares = self._earned(self._rows[numbers]).tolist()
        for number, share in zip(numbers.tolist(), shares, strict=True):
            known, earlier = self.kept[number]
            self._model.fit(known, earlier * share)

    def correct(self, targets: Mapping[int, float]) -> bool:
        """Change what kept experiences say, by sample; learn what has changed most again, if any.

        Return whether anything has changed much.
        """
        changed = []
        for place, row in enumerate(self._rows[: len(self.kept)].tolist()):
            if row in targets:
                link, before = self.kept[place]
                self.kept[place] = link, targets[row]
                if (change := abs(targets[row] - before)) > _CHANGED:
                    changed.append((change, place))
        places = [place for _, place in sorted(changed, reverse=True)[:_RELEARNED]]
        shares = self._earned(self._rows[places]).tolist() if places else []
        for place, share in zip(places, shares, strict=True):
            link, target = self.kept[place]
            self._model.fit(link, target * share)
        return bool(places)

    def counts(self) -> dict[str, Any]:
        """Return how many experiences were seen, and the state of the random choices."""
        return {"seen": self.seen, "random": random_state(self._random).decode()}

    def restore(self, counts: dict[str, Any]) -> int:
        """Load the random choices of `counts`; return how many experiences were seen."""
        restore_random(self._random, counts["random"].encode())
        return int(counts["seen"])


class LinkLearner:
    """Rates waiting samples with the link model (feature 9) and lets it learn.

    What the codes of a sample add to the logit is as old as the last call of `rate` for it; what
    its known facts add is as old as that of `refresh`, which is much cheaper.
    """

    def __init__(
        self, store: SampleStore, options: LinkOptions, seed: int, prior: LinkPrior = NO_PRIOR
    ) -> None:
        self.options = options
        self.model = LinkModel(options, *prior_of(), prior)
        self.fetched = np.zeros(CODES, dtype=np.int32)  # links with a code
        self.rewarded = np.zeros(CODES, dtype=np.int32)  # those of them with a reward
        self._mean = np.zeros(len(KNOWN), dtype=np.float32)  # of the known facts of fetched links
        self._store = store
        self._hosts = HostValues()
        self._trust = Trust(store)
        self._trainer = LinkTrainer(self.model, options, seed, self._trust.earned)
        self._best: dict[int, Codes] = {}  # codes by row: the best hardly change between choices
        self._chosen: dict[int, tuple[int, Codes]] = {}  # by row: URL and codes, until fetched
        self._lessons = Table(_LESSON)  # of pages that may be relevant, in their order
        # By row: what its codes say; how many links of the page were fetched, and their rewards.
        self._links = Table(_LINK)
        self._checkpoint = b""
        self._next = 0  # the row from which waiting samples are rated again
        self._is_resumed = False  # and has not learned by the topic of now since

    def rate(self, rows: Rows) -> None:
        """Set P(relevant) of samples from what the model has learned so far."""
        self._links.grow(len(self._store))
        for start in range(0, len(rows), _CHUNK):
            some = rows[start : start + _CHUNK]
            self._read(some, self.links(some))

    def refresh(self, rows: Rows, best: int) -> NDArray[np.float32]:
        """Rate samples by their codes as they were read last and the facts of now.

        The `best` of them are read again. Return x(s, a) [n, 9] with the new feature 9.
        """
        self._links.grow(len(self._store))
        x = self._store.features(rows)
        known = self._known(rows, x)
        self._rate(rows, known)
        rated = self._store["probability"].take(rows)
        some = np.argpartition(-rated, best)[:best] if len(rows) > best else np.arange(len(rows))
        self._read(rows[some], self.model.read(known[some], *self._best_codes(rows[some])))
        x[:, LINK] = self._store["probability"].take(rows)
        return x

    def rate_again(self, count: int) -> Rows:
        """Rate those of the next `count` samples that wait again, in turn; return their rows."""
        last = min(self._next + count, len(self._store))
        rows = np.arange(self._next, last)
        self._next = last % max(1, len(self._store))
        rows = rows[self._store.is_pending(rows)]
        self.rate(rows)
        return rows

    def bonus(self, rows: Rows) -> NDArray[np.float32]:
        """Return what samples [n] are worth beside what they bring themselves, in relevant pages.

        Their answers teach something of their hosts; fetches under way will teach a part of it.
        Those of bodies that had more pages than they are trusted with are worth less.
        """
        hosts = self._store["host"].take(rows)
        p = self._store["probability"].take(rows)
        domains = self._store["domain"].take(rows)
        room = self._store.ledger.pages_left(domains)
        on_relevant = self._store["static"][rows, PARENT_REWARD] > 0
        gains = self._hosts.gains(hosts, p, room, on_relevant)
        shares = 1 / (1 + self._store.ledger.under_way(domains))
        excess = self._trust.excess(rows)
        worth: NDArray[np.float32] = gains * shares.astype(np.float32) * (1 - excess)
        worth -= PRICE * excess * p
        return worth

    def observe(self, experience: Experience) -> None:
        """Learn from an experience, and from some earlier ones again."""
        self._trainer.learn(self._remember(experience), experience.target)
        if self._trainer.seen % CHECKPOINT == 0:
            self._checkpoint = self._packed()

    def relearn(self, lessons: Mapping[int, tuple[float, float]]) -> bool:
        """Learn by the topic of now: rewards and targets of fetched samples, by row.

        A sample that could not earn a reward, such as a copy, still cannot. In a resumed crawl,
        features of links tell what was known when they were found: the first time all are
        corrected. Return whether anything has changed.
        """
        rows, known = self._lessons["row"], self._lessons["reward"]
        rewards, targets = {}, {}
        for place in np.flatnonzero(np.isin(rows, list(lessons))).tolist():
            row = int(rows[place])
            reward, targets[row] = lessons[row]
            if reward != known[place] or self._is_resumed:
                self._correct_reward(place, reward)
                rewards[row] = known[place] = reward
        self._is_resumed = False
        if rewards:
            self._store.correct_paths(rewards)
        return self._trainer.correct(targets) or bool(rewards)

    def expand(self, page: int, outlinks: Rows) -> None:
        """Note the hosts that a fetched page leads to."""
        self._hosts.note_outlinks(
            int(self._store["host"][page]), self._store["host"].take(outlinks)
        )

    def state(self) -> dict[str, bytes]:
        """Return the state at the last checkpoint; `restore` learns what came after it again."""
        return {"links": self._checkpoint} if self._checkpoint else {}

    def restore(self, past: Past, state: dict[str, bytes]) -> None:
        """Learn a past again, from the last checkpoint on, and rate all samples that wait.

        The hosts that a page opened are counted as its links lead now: some were redirected since.
        Raise ValueError if the state does not fit.
        """
        self._checkpoint = state.get("links", b"")
        learned = self._unpack(self._checkpoint) if self._checkpoint else 0
        if not 0 <= learned <= len(past.rows):
            raise ValueError("the link model has learned more than the crawl has fetched")
        links = zip(past.firsts.tolist(), past.outlinks.tolist(), strict=True)
        for number, experience in enumerate(past.experiences()):
            if number < learned:
                self._remember(experience)
            else:
                self.observe(experience)
            first, count = next(links)
            self.expand(experience.row, np.arange(first, first + count))
        self.rate(self._store.pending_rows())
        self._is_resumed = True

    def links(self, rows: Rows) -> Links:
        """Return what the model reads of samples now."""
        known = self._known(rows, self._store.features(rows))
        return self.model.read(known, *self._codes(rows))

    def evidence(self, row: int) -> LinkEvidence:
        """Return what a sample says, as the model understands it now.

        A known fact adds what it differs from the mean of fetched links.
        """
        rows = np.array([row])
        known = self._known(rows, self._store.features(rows)) - self._mean
        codes = self._best[row] if row in self._best else self._codes(rows)[0]
        self._chosen[row] = self._store["url"][row], codes
        adds = self.model.adds(self._link(known, codes))
        return LinkEvidence(self._store.url(row), self._store.anchors[row], *adds)

    def _codes(self, rows: Rows) -> tuple[Codes, NDArray[np.int64]]:
        """Return the codes of samples [m], and the sample of each by its place in `rows` [m]."""
        codes, owner = url_codes([self._store.url(row) for row in rows.tolist()])
        cues = self._store.cues.take(rows)
        owners = np.repeat(np.arange(len(rows)), cues.counts)
        return np.concatenate([codes, cues.codes]), np.concatenate([owner, owners])

    def _best_codes(self, rows: Rows) -> tuple[Codes, NDArray[np.int64]]:
        """Return what `_codes` does, a sample after the other; only new samples are read.

        A sample may come twice.
        """
        different = dict.fromkeys(rows.tolist())
        new = np.array([row for row in different if row not in self._best], dtype=np.int64)
        codes, owner = self._codes(new)
        ends = np.cumsum(np.bincount(owner, minlength=len(new)))
        parts = np.split(codes[np.argsort(owner, kind="stable")], ends[:-1])
        found = self._best | dict(zip(new.tolist(), parts, strict=False))
        kept = [found[row] for row in rows.tolist()]
        self._best = dict(zip(rows.tolist(), kept, strict=True))
        return np.concatenate(kept), np.repeat(np.arange(len(rows)), [len(each) for each in kept])

    def _link(self, known: NDArray[np.float32], codes: Codes) -> Links:
        """Return what the model reads of one sample from its known facts [1, K] and its codes."""
        return self.model.read(known, codes, np.zeros(len(codes), dtype=np.int64))

    def _known(self, rows: Rows, x: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the known facts [n, K] of samples."""
        none = np.zeros(len(rows), dtype=np.float32)
        without = self.options.without
        siblings = none if "siblings" in without else self._siblings(rows)
        record = self._hosts.logits(self._store["host"].take(rows))
        return known_of(x, siblings, none if "record" in without else record)

    def _siblings(self, rows: Rows) -> NDArray[np.float32]:
        """Return how relevant the fetched links of the same pages are [n], 0 without any."""
        self._links.grow(len(self._store))
        parents = self._store["parent"].take(rows)
        fetched = np.where(parents == NO_PARENT, 0, self._links["fetched"].take(parents))
        relevant = np.where(parents == NO_PARENT, 0, self._links["relevant"].take(parents))
        share: NDArray[np.float32] = ((relevant - 0.5 * fetched) / (fetched + 2)).astype("f4")
        return share

    def _read(self, rows: Rows, links: Links) -> None:
        """Rate samples by what their links say."""
        logits, variances = self.model.codes(links)
        self._links["logit"][rows], self._links["variance"][rows] = logits, variances
        self._rate(rows, links.known)

    def _rate(self, rows: Rows, known: NDArray[np.float32]) -> None:
        logits, variances = (self._links[name].take(rows) for name in ("logit", "variance"))
        estimate = self.model.facts(known)
        whole = Estimate(estimate.logit + logits, np.sqrt(estimate.deviation**2 + variances))
        self._store["probability"][rows] = whole.probability

    def _remember(self, experience: Experience) -> Links:
        """Keep an experience to learn it again, and count it for its siblings."""
        row, x, reward, _ = experience
        rows = np.array([row])
        url, codes = self._chosen.pop(row, (None, None))
        if codes is None or url != self._store["url"][row]:  # a redirect changes the URL
            codes, _ = self._codes(rows)
        link = self._link(self._known(rows, x[None]), codes)
        self._trainer.keep(link, experience.target, row)
        self._mean += (link.known[0] - self._mean) / self._trainer.seen
        self.fetched[link.codes] += 1
        self.rewarded[link.codes] += reward > 0
        where = urlsplit(self._store.url(row))
        is_front = where.path in {"", "/"} and not where.query
        on_relevant = bool(x[PARENT_REWARD])
        host = int(self._store["host"][row])
        number = self._hosts.note_fetch(host, reward, is_front=is_front, on_relevant=on_relevant)
        if experience.target:
            place = self._lessons.extend(1).start
            for name, value in zip(
                _LESSON.names or (), (row, reward, number, is_front), strict=True
            ):
                self._lessons[name][place] = value
        parent = self._store["parent"][row]
        if parent != NO_PARENT:
            self._links["fetched"][parent] += 1
            self._links["relevant"][parent] += reward
        return link

    def _correct_reward(self, place: int, reward: float) -> None:
        """Change the reward of a lesson for its host and its siblings."""
        row, before, number, is_front = (
            self._lessons[name][place].item() for name in _LESSON.names or ()
        )
        host, parent = (int(self._store[name][row]) for name in ("host", "parent"))
        self._hosts.correct_fetch(host, number, before, reward, is_front=is_front)
        if parent != NO_PARENT:
            self._links["relevant"][parent] += reward - before

    def _packed(self) -> bytes:
        head = json.dumps(self._trainer.counts())
        return head.encode() + b"\n" + self.model.state()

    def _unpack(self, state: bytes) -> int:
        """Load a checkpoint; return how many experiences it has learned."""
        head, _, model = state.partition(b"\n")
        seen = self._trainer.restore(json.loads(head))
        self.model.restore(model)
        return seen
