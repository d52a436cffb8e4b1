"""ACHE, an adaptive crawler: it learns which links lead to relevant pages (Barbosa, Freire 2007).

The settings are those that the documentation of ACHE 0.15 gives for a topical crawl. At first the
link classifier "baseline" ranks links by P(relevant) of their page. Every 1,000 pages, online
learning ("binary forward") trains a new one. The most relevant link is fetched first, on any host.
Departures:

- Soft focus: links of irrelevant pages are kept, and all fetches count towards the next training.
  Hard focus, the default of ACHE's code, counts only relevant pages. Its first training would come
  after 1,000 of them, late in a crawl of 5,000 pages.
- MAX counts the pages fetched from a domain; ACHE counts the links it has found.
- Each step takes the best of all links. ACHE's scheduler loads the 10,000 best and spreads them
  over hosts for politeness, which is the downloader's task here. In a crawl of 5,000 pages it would
  hardly ever use what it has learned.
- Links are ordered by the SVM's decision values, an order that Platt scaling would keep. ACHE's
  code reverses it among links classified as irrelevant, so that the most irrelevant come first.
- The SVM has the squared hinge loss and words are not stemmed. A URL that several pages link to
  has the relevance of its best link, not of the first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import NO_TEXT, Experience, PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.lab.rivals.neighbourhood import (
    LinkClassifier,
    Neighbourhood,
    Neighbourhoods,
    train,
)
from tres_scrapy.lab.rivals.queue_policy import QueuePolicy

LEARNING_LIMIT = 1_000  # fetches between two trainings
MAX_SAMPLES = 5_000  # samples of each class
TIE = 1e-6  # random order among links of a page: ACHE's storage keeps no order


class AchePolicy(QueuePolicy):
    """Fetches the most relevant link by the words of its URL, in its anchor and around it.

    Before the first training, links of more relevant pages come first.
    """

    def __init__(self, store: SampleStore, setup: PolicyInputs) -> None:
        super().__init__(store)
        self.trainings = 0
        self._random = np.random.default_rng(setup.seed)
        self._neighbourhoods = Neighbourhoods()
        self._classifier: LinkClassifier | None = None
        self._fetches = 0
        self._visited: dict[bool, list[int]] = {False: [], True: []}  # rows by relevance

    def values(self, rows: Rows, page: PageText) -> NDArray[np.floating]:
        """Return the relevance of links."""
        if self._classifier is not None:
            return self._classifier.decide(self._neighbourhoods, rows)
        return page.probability + TIE * self._random.random(len(rows))

    def observe(self, experience: Experience) -> None:
        """Count the fetch, seeds and failures included, and train if training is due."""
        self._fetches += 1
        if experience.row in self._neighbourhoods:
            self._visited[experience.reward > 0].append(experience.row)
        if self._fetches % LEARNING_LIMIT == 0:
            self._train()

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Read the words of the outlinks and add the outlinks to the queue."""
        urls = [self.store.url(row) for row in outlinks.tolist()]
        anchors = [self.store.anchors[row] for row in outlinks.tolist()]
        arounds = [page.contexts.get(url, "") for url in urls]
        links = list(map(Neighbourhood, urls, anchors, arounds))
        self._neighbourhoods.add(outlinks, links)
        super().expand(experience, outlinks, page)

    def figures(self) -> dict[str, float | str]:
        """Report how often the link classifier was trained."""
        return {"link_trainings": self.trainings}

    def sample(self) -> tuple[Rows, NDArray[np.bool_]]:
        """Draw training links, at most half of them irrelevant; return rows and labels."""
        relevant = self._random.permutation(self._visited[True])[:MAX_SAMPLES]
        irrelevant = self._random.permutation(self._visited[False])[: len(relevant)]
        rows = np.concatenate([relevant, irrelevant]).astype(np.int64)
        return rows, np.arange(len(rows)) < len(relevant)

    def _train(self) -> None:
        """Train a new link classifier and sort the queue by its decision values."""
        classifier = train(self._neighbourhoods, *self.sample())
        if classifier is None:
            return
        self.trainings += 1
        self._classifier = classifier
        waiting = self.queue.empty()
        self.queue.push(waiting, classifier.decide(self._neighbourhoods, waiting))
