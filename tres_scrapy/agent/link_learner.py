"""Learns from each experience what links say about the pages behind them."""

from __future__ import annotations

import json
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.link_option import LinkOptions
from tres_scrapy.crawl.policy import Experience
from tres_scrapy.crawl.resumption import Past, random_state, restore_random
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import NO_PARENT, SampleStore
from tres_scrapy.links.code import CODES, url_codes
from tres_scrapy.links.model import LinkModel, Links, Said, sigmoid
from tres_scrapy.links.prior import KNOWN, known_of, prior_of

CHECKPOINT: Final = 1_000  # experiences between two saved states
_CHUNK: Final = 5_000  # links scored at once


class LinkLearner:
    """Rates waiting samples with the link model (feature 9) and lets it learn.

    The rating of a sample is as old as the last call of `rate` for it.
    """

    def __init__(self, store: SampleStore, options: LinkOptions, seed: int) -> None:
        self.options = options
        self.model = LinkModel(options, *prior_of(options))
        self.fetched = np.zeros(CODES, dtype=np.int32)  # links with a code
        self.rewarded = np.zeros(CODES, dtype=np.int32)  # those of them with a reward
        self._mean = np.zeros(len(KNOWN), dtype=np.float32)  # of the known facts of fetched links
        self._store = store
        self._random = np.random.default_rng(seed)
        self._kept: list[tuple[Links, float]] = []  # experiences to learn again
        self._seen = 0
        self._children: dict[int, tuple[int, float]] = {}  # fetched links of a page, and rewards
        self._checkpoint = b""
        self._next = 0  # the row from which waiting samples are rated again

    def rate(self, rows: Rows) -> None:
        """Set P(relevant) of samples from what the model has learned so far."""
        for start in range(0, len(rows), _CHUNK):
            some = rows[start : start + _CHUNK]
            estimate = self.model.estimate(self.links(some))
            self._store.rate(some, estimate.probability, estimate.deviation)

    def rate_again(self, count: int) -> Rows:
        """Rate those of the next `count` samples that wait again, in turn; return their rows."""
        last = min(self._next + count, len(self._store))
        rows = np.arange(self._next, last)
        self._next = last % max(1, len(self._store))
        rows = rows[self._store.waits(rows)]
        self.rate(rows)
        return rows

    def chances(
        self, rows: Rows, weight: float, random: np.random.Generator
    ) -> NDArray[np.float32]:
        """Return P(relevant) of samples drawn from the posterior (Thompson), minus its mean.

        The deviation is multiplied by `weight`.
        """
        mean, doubt = self._store.rated(rows)
        p = np.clip(mean, 1e-6, 1 - 1e-6)
        noise = random.standard_normal(len(rows), dtype=np.float32)
        return sigmoid(np.log(p / (1 - p)) + weight * doubt * noise) - mean

    def observe(self, experience: Experience) -> None:
        """Learn from an experience, and from some earlier ones again."""
        link = self._remember(experience)
        self.model.gain(link)
        self.model.fit(link, experience.reward)
        for number in self._random.integers(len(self._kept), size=self.options.replays).tolist():
            self.model.fit(*self._kept[number])
        if self._seen % CHECKPOINT == 0:
            self._checkpoint = self._packed()

    def state(self) -> dict[str, bytes]:
        """Return the state at the last checkpoint; `restore` learns what came after it again."""
        return {"links": self._checkpoint} if self._checkpoint else {}

    def restore(self, past: Past, state: dict[str, bytes]) -> None:
        """Learn a past again, from the last checkpoint on; raise ValueError if it does not fit."""
        self._checkpoint = state.get("links", b"")
        learned = self._unpack(self._checkpoint) if self._checkpoint else 0
        if not 0 <= learned <= len(past.rows):
            raise ValueError("the link model has learned more than the crawl has fetched")
        experiences = map(Experience, past.rows.tolist(), past.x, past.rewards.tolist())
        for number, experience in enumerate(experiences):
            if number < learned:
                self._remember(experience)
            else:
                self.observe(experience)

    def links(self, rows: Rows, x: NDArray[np.float32] | None = None) -> Links:
        """Return what the model reads of samples; `x` [n, 9] is x(s, a), by default that of now."""
        urls = [self._store.url(row) for row in rows.tolist()]
        codes, owner = url_codes(urls)
        cues = self._store.cues.take(rows)
        codes = np.concatenate([codes, cues.codes])
        owner = np.concatenate([owner, np.repeat(np.arange(len(rows)), cues.counts)])
        x = self._store.features(rows) if x is None else x
        return self.model.read(known_of(x, self._siblings(rows)), codes, owner)

    def said(self, row: int) -> Said:
        """Return what a sample says, as the model understands it now.

        A known fact adds what it differs from the mean of fetched links.
        """
        link = self.links(np.array([row]))
        adds = self.model.adds(link._replace(known=link.known - self._mean))
        return Said(self._store.url(row), self._store.anchors[row], *adds)

    def _siblings(self, rows: Rows) -> NDArray[np.float32]:
        if "siblings" in self.options.without:
            return np.zeros(len(rows), dtype=np.float32)
        parents = self._store.parents(rows).tolist()
        children = [self._children.get(parent, (0, 0.0)) for parent in parents]
        fetched, relevant = np.array(children).reshape(-1, 2).T
        share: NDArray[np.float32] = ((relevant - 0.5 * fetched) / (fetched + 2)).astype("f4")
        return share

    def _remember(self, experience: Experience) -> Links:
        """Keep an experience to learn it again, and count it for its siblings."""
        row, x, reward = experience
        link = self.links(np.array([row]), x[None])
        if len(self._kept) < self.options.replay_capacity:
            self._kept.append((link, reward))
        else:
            self._kept[self._seen % len(self._kept)] = link, reward
        self._seen += 1
        self._mean += (link.known[0] - self._mean) / self._seen
        self.fetched[link.codes] += 1
        self.rewarded[link.codes] += reward > 0
        parent = self._store.parent(row)
        if parent != NO_PARENT:
            fetched, relevant = self._children.get(parent, (0, 0.0))
            self._children[parent] = fetched + 1, relevant + reward
        return link

    def _packed(self) -> bytes:
        head = json.dumps({"seen": self._seen, "random": random_state(self._random).decode()})
        return head.encode() + b"\n" + self.model.state()

    def _unpack(self, state: bytes) -> int:
        """Load a checkpoint; return how many experiences it has learned."""
        head, _, model = state.partition(b"\n")
        facts = json.loads(head)
        restore_random(self._random, facts["random"].encode())
        self.model.restore(model)
        return int(facts["seen"])
