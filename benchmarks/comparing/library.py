"""A cache of the pages of an offline web, each read and judged once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from sys import intern
from typing import Final

import numpy as np
from scrapy.http import Headers, HtmlResponse
from scrapy.responsetypes import responsetypes
from scrapy.settings.default_settings import METAREFRESH_IGNORE_TAGS, METAREFRESH_MAXDELAY
from scrapy.utils.response import get_meta_refresh

from tres_scrapy.agent.policy_inputs import Kind
from tres_scrapy.config.limit import ReadingLimits
from tres_scrapy.crawl.failure import NOT_HTML, Failure
from tres_scrapy.downloader.refusal import START
from tres_scrapy.frontier.admission import NO_LINKS, Outlinks
from tres_scrapy.lab.webs.web import Answer, Web
from tres_scrapy.links.code import Wordbook
from tres_scrapy.page.copies import fingerprint
from tres_scrapy.page.kind import is_soft_404, only_leads_on
from tres_scrapy.page.language import decoded, encoding_of
from tres_scrapy.page.text import Page, read_page
from tres_scrapy.topic.judge import cues_of
from tres_scrapy.topic.pack import Judged, Pack
from tres_scrapy.url.canonical import canonicalise

MOST_KEPT = 150_000  # pages, some 10 KB each
REDIRECTS: Final = (301, 302, 303, 307, 308)
OK: Final = 200


@dataclass(frozen=True, slots=True)
class Fetched:
    """The outcome of fetching a URL, the same for every crawl.

    `location` is the target of a redirect; `failure` is set if there is no page. `answer` has no
    body. `judged` is the page, with its text if a policy has asked for it, and without links:
    those are `links`. `rewarded`, `told` and `cued` are whether P(relevant), the text and the cues
    were computed.
    """

    answer: Answer
    location: str | None = None
    failure: Failure | None = None
    judged: Judged | None = None
    links: Outlinks = NO_LINKS
    rewarded: bool = True
    told: bool = True
    cued: bool = True


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
            kept.rewarded >= kind.rewarded
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
        unjudged = Judged(page, 0.0, np.zeros((len(page.links), 3), dtype=np.float32))
        if is_soft_404(page):
            return Fetched(answer, judged=unjudged._replace(page=_bare(page), is_missing=True))
        judged = self._pack.judge([page])[0] if kind.rewarded else unjudged
        links = Outlinks(
            _kept_once(link.url for link in page.links),
            _kept_once(link.anchor for link in page.links),
            judged.actions,
            cues_of(self._pack, judged, self._words),
        )
        kept = replace(page, places=()) if kind.reads_text else _bare(page)
        judged = judged._replace(page=kept, mark=fingerprint(page))
        return Fetched(
            answer,
            judged=judged,
            links=links,
            rewarded=kind.rewarded,
            told=kind.reads_text,
            cued=kind.reads_cues,
        )


def _bare(page: Page) -> Page:
    """Return a page without its text and links."""
    return replace(page, title="", text="", links=(), contexts=(), places=())


def _kept_once(texts: Iterable[str]) -> tuple[str, ...]:
    """Return interned texts: equal texts on many pages share one copy."""
    return tuple(map(intern, texts))


def read_answer(
    url: str, answer: Answer, limits: ReadingLimits, *, contexts: bool = False, places: bool = False
) -> Page | Failure | str:
    """Read an answer as a crawl does: a page, why there is none, or the target of a redirect."""
    headers = Headers(dict(answer.headers))
    if answer.status in REDIRECTS and "Location" in headers:
        return (headers["Location"] or b"").decode("latin-1")
    if answer.status != OK:
        return Failure.of_status(answer.status)
    cls = responsetypes.from_args(headers=headers, url=url, body=answer.body)
    if not issubclass(cls, HtmlResponse):
        return NOT_HTML
    encoding = encoding_of(answer.body, (headers.get("Content-Type") or b"").decode("latin-1"))
    start = HtmlResponse(url, body=answer.body[:START], encoding=encoding)
    delay, target = get_meta_refresh(start, METAREFRESH_IGNORE_TAGS)
    is_soon = delay is not None and delay < METAREFRESH_MAXDELAY
    if target and is_soon and canonicalise(target) and only_leads_on(answer.body, url, target):
        return target
    return read_page(
        decoded(answer.body, encoding, limits.html),
        url,
        limits,
        contexts=contexts,
        places=places,
        language=False,
        robots=[each.decode("latin-1") for each in headers.getlist("X-Robots-Tag")],
    )
