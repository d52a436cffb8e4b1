"""A cache of the pages of an offline web, each read and judged once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from sys import intern

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import NO_TEXT, PageText
from tres_scrapy.agent.policy_inputs import Kind
from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.crawl.failure import Failure
from tres_scrapy.crawl.visit import text_of
from tres_scrapy.frontier.admission import NO_CUES
from tres_scrapy.lab.webs.graph import read_answer
from tres_scrapy.lab.webs.web import Answer, Web
from tres_scrapy.links.code import RaggedArray, Wordbook
from tres_scrapy.page.duplicate import fingerprint
from tres_scrapy.page.empty_page import is_soft_404
from tres_scrapy.page.text import Page
from tres_scrapy.topic.judge import cues_of
from tres_scrapy.topic.pack import Judgement, Pack

UNJUDGED = Judgement(0.0, actions=np.zeros((0, 3), dtype=np.float32))
MOST_KEPT = 150_000  # pages, some 10 KB each


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome of fetching a URL, the same for every crawl.

    `location` is the target of a redirect; `failure` is set if there is no page. `answer` has no
    body. `judged`, `told` and `cued` are whether P(relevant), the text and the cues were computed;
    `is_missing` is whether the page says "not found" (soft 404), `is_hidden` whether noindex.
    """

    answer: Answer
    location: str | None = None
    failure: Failure | None = None
    mark: bytes = b""
    judged: bool = True
    told: bool = True
    cued: bool = True
    probability: float = 0.0
    is_missing: bool = False
    is_hidden: bool = False
    urls: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    actions: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 3), np.float32))
    cues: RaggedArray = NO_CUES
    text: PageText = NO_TEXT


class Library:
    """Fetch URLs of a web and keep the outcomes; when full, forget all of them."""

    def __init__(self, web: Web, pack: Pack, limits: ReadingLimits) -> None:
        self._web = web
        self._pack = pack
        self._limits = limits
        self._kept: dict[str, Fetched] = {}
        self._words = Wordbook()

    def fetch(self, url: str, kind: Kind) -> Fetched:
        """Return the outcome of a URL, with everything that this kind of policy needs."""
        kept = self._kept.get(url)
        if kept is not None and (
            kept.judged >= kind.rewarded
            and kept.told >= kind.reads_text
            and kept.cued >= kind.reads_cues
        ):
            return kept
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        fetched = self._kept[url] = self._fetch(url, kind)
        return fetched

    def _fetch(self, url: str, kind: Kind) -> Fetched:
        answer = self._web.answer(url)
        bare = replace(answer, body=b"")
        page = read_answer(
            url, answer, self._limits, contexts=kind.reads_text, places=kind.reads_cues
        )
        if isinstance(page, str):
            return Fetched(bare, location=page)
        return (
            Fetched(bare, failure=page)
            if isinstance(page, Failure)
            else self._read(bare, page, kind)
        )

    def _read(self, answer: Answer, page: Page, kind: Kind) -> Fetched:
        mark = fingerprint(page)
        if is_soft_404(page):
            return Fetched(answer, is_missing=True, mark=mark)
        judgement = UNJUDGED
        if kind.rewarded:
            judgement = self._pack.judge([page])[0]
        return Fetched(
            answer,
            mark=mark,
            judged=kind.rewarded,
            told=kind.reads_text,
            cued=kind.reads_cues,
            probability=judgement.probability,
            is_hidden=not page.may_be_kept,
            urls=_kept_once(link.url for link in page.links),
            anchors=_kept_once(link.anchor for link in page.links),
            actions=judgement.actions if kind.rewarded else np.zeros((len(page.links), 3), "f4"),
            cues=cues_of(self._pack, page, judgement, self._words),
            text=text_of(page, judgement.probability) if kind.reads_text else NO_TEXT,
        )


def _kept_once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return interned texts: equal texts on many pages share one copy."""
    return tuple(map(intern, texts))
