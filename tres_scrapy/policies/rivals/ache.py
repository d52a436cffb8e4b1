"""ACHE, an adaptive crawler: it learns which links lead to relevant pages (Barbosa, Freire 2007).

The crawl is the one that the documentation of ACHE 0.15 configures for a topic: the link
classifier "baseline" at first, which ranks links by P(relevant) of their page, online learning of
the binary forward kind every 1,000 pages, the most relevant links first, no seed scope. Departures:

- Soft focus: links of irrelevant pages are kept, and all fetches count towards the next training.
  Hard focus, the default of ACHE's code, would count relevant pages only and learn for the first
  time after 1,000 of them, late in a crawl of 5,000 pages.
- MAX counts the pages fetched of a domain; ACHE counts the links it has found.
- The best link of all is taken at each step. ACHE's scheduler loads the 10,000 best and spreads
  them over hosts, for politeness, which is the fetcher's here; in a crawl of 5,000 pages what it
  has learned would hardly ever be asked.
- Links are in the order of the SVM's decision values, which Platt scaling would keep. ACHE's code
  turns it round among the links deemed irrelevant, so that the surest of them come first.
- The SVM has the squared hinge loss, words are not stemmed, and a URL that several pages link to
  has the relevance of its best link instead of the first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.config.extra import require
from tres_scrapy.crawl.policy import NO_TEXT, Experience, PageText
from tres_scrapy.crawl.setup import Setup
from tres_scrapy.frontier.pool import Rows
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.policies.rivals.neighbourhood import (
    LinkClassifier,
    Neighbourhood,
    Neighbourhoods,
    train,
)
from tres_scrapy.policies.rivals.queue_policy import QueuePolicy

LEARNING_LIMIT = 1_000  # fetches between two trainings
MAX_SAMPLES = 5_000  # of each class
TIE = 1e-6  # the links of a page come in random order: ACHE's storage keeps none


class AchePolicy(QueuePolicy):
    """Fetches the link of the highest relevance by the words of its URL, its anchor and around it.

    Until it first has links of both classes to learn from, links of more relevant pages go first.
    """

    def __init__(self, store: SampleStore, setup: Setup) -> None:
        require("train", "policy 'ache'")
        super().__init__(store)
        self.trainings = 0
        self._random = np.random.default_rng(setup.seed)
        self._neighbourhoods = Neighbourhoods()
        self._classifier: LinkClassifier | None = None
        self._fetches = 0
        self._visited: dict[bool, list[int]] = {False: [], True: []}  # links by their relevance

    def values(self, rows: Rows, page: PageText) -> NDArray[np.floating]:
        """Return the relevance of links."""
        if self._classifier is not None:
            return self._classifier.decide(self._neighbourhoods, rows)
        return page.probability + TIE * self._random.random(len(rows))

    def observe(self, experience: Experience) -> None:
        """Count the fetch, and train when it is time; seeds and failures are fetches as well."""
        self._fetches += 1
        if experience.row in self._neighbourhoods:
            self._visited[experience.reward > 0].append(experience.row)
        if self._fetches % LEARNING_LIMIT == 0:
            self._train()

    def expand(self, experience: Experience, outlinks: Rows, page: PageText = NO_TEXT) -> None:
        """Read the words of the outlinks and put them into the queue."""
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
        """Draw links to learn from and say which are relevant: at least as many as are not."""
        relevant = self._random.permutation(self._visited[True])[:MAX_SAMPLES]
        irrelevant = self._random.permutation(self._visited[False])[: len(relevant)]
        rows = np.concatenate([relevant, irrelevant]).astype(np.int64)
        return rows, np.arange(len(rows)) < len(relevant)

    def _train(self) -> None:
        """Train the link classifier anew and put the queue into the order of its decisions."""
        classifier = train(self._neighbourhoods, *self.sample())
        if classifier is None:
            return
        self.trainings += 1
        self._classifier = classifier
        waiting = self.queue.empty()
        self.queue.push(waiting, classifier.decide(self._neighbourhoods, waiting))
