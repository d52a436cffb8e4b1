"""The topic of a crawl with a trained pack, which answers correct: a folder made of its record.

The pages keep the P(relevant) that the pack gave them in the crawl. So the pack itself is not
needed, and a judge of the user's own or several topics are corrected in the same way. A running
crawl that has answers keeps its pages in the folder itself.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Final

from tres_scrapy.crawl.assembly import threshold_of
from tres_scrapy.export.topic_view import topic_folder, words_of
from tres_scrapy.report.record import Record
from tres_scrapy.run.run_file import NAME, Fetch
from tres_scrapy.topic.keyword_topic import PageWords
from tres_scrapy.topic.pack import Pack, load_packs
from tres_scrapy.topic.shipped import packs
from tres_scrapy.topic.topic_folder import IN_JOB, SUFFIX, TopicFolder, read_answers
from tres_scrapy.topic.topic_learner import LEAST_WORDS, MAX_PAGES, begin_topic
from tres_scrapy.url.message import TresError

TEXTS: Final = "TRES_TEXTS"
JUDGE: Final = "TRES_JUDGE"


def topic_to_answer(record: Record, wanted: Collection[str] = ()) -> TopicFolder:
    """Return the folder of a crawl's topic; with a trained pack, make it or take new pages into it.

    Pages that earlier crawls to the same output have left there stay.
    Pages with a URL in `wanted` are kept in any case. Raise TresError if the pack is missing, the
    record has no texts, the crawl was divided into shards, or another process has the topic.
    """
    folder = topic_folder(record)
    if folder is None:
        own = record.path
        folder = TopicFolder(own.parent / IN_JOB if own.name == NAME else own.with_suffix(SUFFIX))
    elif not Pack.load(folder.pack).prior_weight:
        return folder
    if record.settings().get(TEXTS) != "True":
        raise TresError(f"{record.path}: a crawl without texts in its record cannot learn")
    if record.shards() > 1:
        raise TresError(f"{record.path}: a crawl in shards cannot learn from answers")
    folder.path.mkdir(parents=True, exist_ok=True)
    with folder.reserved() as alone:
        if not alone:  # the crawl runs, and learns from its pages itself
            return folder
        known = folder.read_state().get("answers", {})  # of a file that `answers` names too
        answered = {*wanted, *known, *read_answers(folder.answers)}
        fetches = list(record.pages(0.0))
        pages = _pages(record, fetches, answered)
        if not pages:
            raise TresError(f"{record.path}: no page with a text to ask about yet")
        fetched = {url for page in fetches for url in (page.url, page.final_url)}
        earlier = [page for *_, page in folder.read_pages() if page.url not in fetched]
        kept = enumerate([*earlier, *pages], 1)
        folder.keep_pages((number, str(number), page) for number, page in kept)
        if not folder.pack.is_dir():
            name, models = record.meta()["topic"], record.settings().get("TRES_MODELS")
            places = _places(name, None if models is None else Path(models))
            pack = load_packs(places, lazily=True)
            pack.threshold = threshold_of(record.settings().get(JUDGE), pack)
            begin_topic(folder, name, pack)
    return folder


def _places(topic: str, models: Path | None) -> list[Path]:
    known = packs(models)
    names = topic.split("+")
    if missing := [name for name in names if name not in known]:
        raise TresError(f"the pack {missing[0]!r} of the crawl is missing: put it back to answer")
    return [known[name] for name in names]


def _pages(record: Record, fetches: Sequence[Fetch], wanted: Collection[str]) -> list[PageWords]:
    """Return MAX_PAGES of the fetches of a run, the wanted ones and others drawn by their URL."""

    def order(page: Fetch) -> tuple[bool, bytes]:
        drawn = not {page.url, page.final_url or page.url}.intersection(wanted)
        return drawn, blake2b(page.url.encode(), digest_size=8).digest()

    found: dict[int, PageWords] = {}
    for page in sorted(fetches, key=order):
        kept = words_of(page, record.text(page), record.trained(page))
        if sum(kept.words.values()) >= LEAST_WORDS and not record.remark(page):
            found[page.row] = kept
        if len(found) == MAX_PAGES:
            break
    return [page for _, page in sorted(found.items())]
