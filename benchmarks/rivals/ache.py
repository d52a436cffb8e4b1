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

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rivals.baseline import QueuePolicy
from tres_scrapy.agent.policy import NO_TEXT, Experience, PageText
from tres_scrapy.agent.policy_inputs import PolicyInputs
from tres_scrapy.frontier.column import Rows, Table
from tres_scrapy.frontier.store import SampleStore
from tres_scrapy.page.place import tokenise
from tres_scrapy.page.text import STOP_WORDS

LEARNING_LIMIT = 1_000  # fetches between two trainings
MAX_SAMPLES = 5_000  # samples of each class
TIE = 1e-6  # random order among links of a page: ACHE's storage keeps no order


class AchePolicy(QueuePolicy):
    """Fetches the most relevant link by the words of its URL, in its anchor and around it.

    Before the first training, links of more relevant pages come first.
    """

    reads_text = True

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


MAX_FEATURES = (150, 150, 100)  # most words of URLs, of anchors and around links
MIN_LETTERS = 3
COMMON = 10  # if any word of a field occurs more often, its features
RARE, RARE_AT_FIRST = 5, 1  # must occur more than RARE times, else RARE_AT_FIRST
_LEFT_OUT = -1
_AT_ONCE = 100_000  # links in one step: limits the memory that valuing them takes

Numbers = NDArray[np.int64]


class Neighbourhood(NamedTuple):
    """A link's URL, its anchor and the text around it."""

    url: str
    anchor: str
    around: str


class Words(NamedTuple):
    """The words of several links: the number of each word, and the index of its link."""

    numbers: Numbers
    links: Numbers


class Neighbourhoods:
    """The distinct words in each link's URL, in its anchor and around it, as numbers.

    Only path and query of a URL are read. The same word in two fields has two numbers.
    """

    def __init__(self) -> None:
        self._fields = bytearray()  # field by word number
        self._vocabularies = [_Vocabulary(i, self._fields) for i in range(len(MAX_FEATURES))]
        self._words = Table(np.dtype([("number", "i4")]))
        self._links = Table(np.dtype([("start", "i8"), ("size", "i4"), ("known", "?")]))  # by row

    def __contains__(self, row: int) -> bool:
        return row < len(self._links) and bool(self._links["known"][row])

    @property
    def fields(self) -> NDArray[np.uint8]:
        """The field of each word, by its number."""
        return np.array(self._fields, dtype=np.uint8)

    def add(self, rows: Rows, links: Sequence[Neighbourhood]) -> None:
        """Read and store the words of links."""
        numbers = [self._read(link) for link in links]
        sizes = [len(each) for each in numbers]
        where = self._words.extend(sum(sizes))
        self._words["number"][where] = list(chain.from_iterable(numbers))
        self._links.extend(max(0, int(rows.max(initial=-1)) + 1 - len(self._links)))
        self._links["start"][rows] = where.start + np.cumsum(sizes) - sizes
        self._links["size"][rows] = sizes
        self._links["known"][rows] = True

    def words(self, rows: Rows) -> Words:
        """Return the words of links."""
        starts, sizes = self._links["start"][rows], self._links["size"][rows]
        links = np.repeat(np.arange(len(rows)), sizes)
        places = np.arange(len(links)) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        return Words(self._words["number"][places].astype(np.int64), links)

    def _read(self, link: Neighbourhood) -> list[int]:
        path = link.url.split("/", 3)[-1]
        words = set[int]()
        for vocabulary, text in zip(self._vocabularies, (path, *link[1:]), strict=True):
            words.update(map(vocabulary.__getitem__, tokenise(text)))
        return sorted(words - {_LEFT_OUT})


class _Vocabulary(dict[str, int]):
    """Numbers the words of a field; short words and stop words get no number."""

    def __init__(self, field: int, fields: bytearray) -> None:
        super().__init__()
        self._field, self._fields = field, fields

    def __missing__(self, word: str) -> int:
        left_out = len(word) < MIN_LETTERS or word in STOP_WORDS
        self[word] = _LEFT_OUT if left_out else len(self._fields)
        if not left_out:
            self._fields.append(self._field)
        return self[word]


class LinkClassifier(NamedTuple):
    """A linear SVM over the presence of words; `weights` are indexed by word number."""

    weights: NDArray[np.float64]  # the last one, 0, is for words added after training
    bias: float

    def decide(self, neighbourhoods: Neighbourhoods, rows: Rows) -> NDArray[np.floating]:
        """Return the decision values [n] of links; higher is more relevant."""
        values = np.full(len(rows), self.bias)
        for start in range(0, len(rows), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            words = neighbourhoods.words(rows[part])
            weights = self.weights[np.minimum(words.numbers, len(self.weights) - 1)]
            values[part] += np.bincount(words.links, weights, minlength=len(rows[part]))
        return values


def train(
    neighbourhoods: Neighbourhoods, rows: Rows, relevant: NDArray[np.bool_]
) -> LinkClassifier | None:
    """Return a link classifier, or None if only one class or no frequent word is present."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow import, only needed here
    from sklearn.svm import LinearSVC  # noqa: PLC0415

    words, fields = neighbourhoods.words(rows), neighbourhoods.fields
    features = frequent_words(fields, words.numbers)
    if relevant.all() or not relevant.any() or not len(features):
        return None
    columns = np.full(len(fields), -1)
    columns[features] = np.arange(len(features))
    of_words = columns[words.numbers]
    chosen = of_words >= 0
    places = words.links[chosen], of_words[chosen]
    x = csr_matrix((np.ones(len(places[0])), places), shape=(len(rows), len(features)))
    svm = LinearSVC(C=1.0, dual=False).fit(x, relevant)
    weights = np.zeros(len(fields) + 1)
    weights[features] = svm.coef_[0]
    return LinkClassifier(weights, float(svm.intercept_[0]))


def frequent_words(fields: NDArray[np.uint8], numbers: Numbers) -> Numbers:
    """Return the most frequent words of each field among `numbers`."""
    counts = np.bincount(numbers, minlength=len(fields))
    chosen = []
    for field, limit in enumerate(MAX_FEATURES):
        own = np.flatnonzero(fields == field)
        most = counts[own].max(initial=0)
        own = own[counts[own] > (RARE if most > COMMON else RARE_AT_FIRST)]
        chosen.append(own[np.argsort(-counts[own], kind="stable")][:limit])
    return np.concatenate(chosen)
