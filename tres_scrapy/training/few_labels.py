"""A topic pack from few labelled documents, keywords and unlabelled pages of a crawl.

The model is that of a crawl from keywords (keyword_topic.py): the unlabelled pages, of other
sources perhaps, say which words go together, and the labels correct it like answers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from tres_scrapy.topic.classifier import Text
from tres_scrapy.topic.keyword_topic import THRESHOLD, KeywordTopic, PageWords
from tres_scrapy.topic.pack_file import write_pack
from tres_scrapy.topic.threshold import Share
from tres_scrapy.topic.topic_folder import topic_facts
from tres_scrapy.topic.topic_learner import NEAR
from tres_scrapy.training.validation import interval, reporter
from tres_scrapy.url.message import TresError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from tres_scrapy.topic.keyword import KeywordSet
    from tres_scrapy.topic.keyword_topic import TopicFit
    from tres_scrapy.training.document import Document

FEWEST_DOCUMENTS: Final = 20
MOST_DOCUMENTS: Final = 600  # with more, other models are better, and this one takes minutes
PARTS: Final = 5  # of the hosts, each tested once
WIDE: Final = 0.3  # an interval that says little


class FewTrained(NamedTuple):
    """What held-out hosts say of a model: P(relevant) of each document [n], and its label [n]."""

    probability: NDArray[np.float64]
    true: NDArray[np.bool_]
    pages: int

    @property
    def precision(self) -> Share | None:
        """The share of relevant ones among documents called relevant, None without any."""
        called = self.probability >= THRESHOLD
        if not called.any():
            return None
        return interval(int((called & self.true).sum()), int(called.sum()))

    @property
    def recall(self) -> Share:
        """The share of relevant documents that are called relevant."""
        found = int((self.true & (self.probability >= THRESHOLD)).sum())
        return interval(found, int(self.true.sum()))

    def __str__(self) -> str:
        relevant, count = int(self.true.sum()), len(self.true)
        lines = [
            f"{count} documents, {relevant} of them relevant, and {self.pages} unlabelled pages",
            "On hosts that it was not trained on, with 95 % intervals:",
        ]
        if self.precision is None:
            lines.append("  it calls no document relevant")
        else:
            lines.append(f"  of the documents it calls relevant, {self.precision} are")
        lines.append(f"  of the relevant documents, it finds {self.recall}")
        return "\n".join([*lines, self.verdict])

    @property
    def verdict(self) -> str:
        """Return in one sentence what can be trusted."""
        if self.precision is None or self.precision.low <= self.true.mean():
            return "Trust nothing yet: it may be no better than chance. Add documents or pages."
        if any(share.high - share.low > WIDE for share in (self.precision, self.recall)):
            return (
                "It is better than chance; the figures are rough: four times as many documents "
                "halve the intervals."
            )
        return "The figures hold within the intervals, for pages like these documents."


def train_few(
    directory: Path,
    keywords: KeywordSet,
    documents: Sequence[Document],
    pages: Sequence[PageWords] = (),
    *,
    seed: int = 0,
    date: str = "",
    say: Callable[[str], None] = lambda line: None,
) -> FewTrained:
    """Train a pack on documents and unlabelled pages, write it, and test it on held-out hosts.

    The same arguments write the same bytes. `say` receives a line after each fold. Raise TresError
    if there are too few or too many documents, if a label is missing or from one host only, or if
    no keyword is known.
    """
    true = np.array([document.relevant for document in documents], dtype=bool)
    if not FEWEST_DOCUMENTS <= len(true) <= MOST_DOCUMENTS or len(np.unique(true)) < 2:
        raise TresError(
            f"--classifier words takes {FEWEST_DOCUMENTS} to {MOST_DOCUMENTS} documents of both "
            f"labels, not {true.sum()} relevant and {(~true).sum()} irrelevant ones"
        )
    _check_hosts(documents)
    topic = KeywordTopic.in_english(keywords)
    pages = [page.text_alone() for page in pages]  # documents have no links
    labelled = [_page_words(number, document) for number, document in enumerate(documents)]
    part = _parts(documents, seed)
    folds = np.unique(part).tolist()
    ended = reporter("words", say, len(folds), more=True)
    probability = np.zeros(len(true))
    for fold, tested in enumerate(folds):
        rows = np.flatnonzero(part == tested)
        hosts = {documents[row].host for row in rows.tolist()}
        others = [page for page in pages if _host(page) not in hosts]
        kept = _fit(topic, labelled, true, part != tested, others)
        probability[rows] = kept.judge(labelled[row] for row in rows.tolist())
        ended(fold + 1, None)
    trained = FewTrained(probability, true, len(pages))
    fit = _fit(topic, labelled, true, part >= 0, pages)
    facts = topic_facts(directory.name, keywords, topic.near(NEAR), fit)
    facts["training"] = {"seed": seed, "date": date, "documents": len(true), "pages": len(pages)}
    facts["validation"] = {
        name: [round(value, 4) for value in share]
        for name, share in (("precision", trained.precision), ("recall", trained.recall))
        if share is not None
    }
    write_pack(directory, facts, fit.model)
    return trained


def _page_words(number: int, document: Document) -> PageWords:
    words = Counter(Text.of(f"{document.title} {document.text}").words)
    return PageWords(f"#{number}", document.title, "", words)


def _host(page: PageWords) -> str:
    return (urlsplit(page.url).hostname or "").removeprefix("www.")  # as of a Document


def _check_hosts(documents: Sequence[Document]) -> None:
    """Raise TresError if a test would leave a label without documents to learn from."""
    yes, no = (len({each.host for each in documents if each.relevant is k}) for k in (True, False))
    if min(yes, no) < 2:
        raise TresError(
            "--classifier words needs documents of each label from two hosts or more: the relevant "
            f"ones are from {yes}, the irrelevant ones from {no}"
        )


def _parts(documents: Sequence[Document], seed: int) -> NDArray[np.int64]:
    """Return the part that tests each document [n]; a host is in one part."""
    relevant = {document.host for document in documents if document.relevant}
    hosts = sorted({document.host for document in documents})
    drawn = [hosts[row] for row in np.random.default_rng(seed).permutation(len(hosts)).tolist()]
    drawn.sort(key=lambda host: host not in relevant)  # both kinds are spread over the parts
    place = {host: number % PARTS for number, host in enumerate(drawn)}
    return np.array([place[document.host] for document in documents], dtype=np.int64)


def _fit(
    topic: KeywordTopic,
    labelled: Sequence[PageWords],
    true: NDArray[np.bool_],
    used: NDArray[np.bool_],
    pages: Sequence[PageWords],
) -> TopicFit:
    rows = np.flatnonzero(used).tolist()
    return topic.fit(
        [*(labelled[row] for row in rows), *pages],
        {labelled[row].url: bool(true[row]) for row in rows},
    )
