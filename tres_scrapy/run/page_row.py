"""The row of the table `page` for a booking: what was fetched, and why it was chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.crawl.visit import Visit
from tres_scrapy.links.code import url_texts
from tres_scrapy.run.page_text import packed
from tres_scrapy.run.reason import kind_of, parts_of, rivals_of, size_of
from tres_scrapy.run.run_file import LONGEST_URL
from tres_scrapy.run.snapshot import FETCHED, link_learner_of

LONGEST: Final = 300  # characters kept of a title, a text and an anchor
COLUMNS: Final = (
    "row, parent, time, url, final_url, domain, title, anchor, kind, relevant, copy, reward, "
    "probability, x, chosen, leaf, splits, q_value, samples, leaves, link, text, url_number, host, "
    "first, outlinks, mark"
)
_VALUES: Final = ", ".join("?" * len(COLUMNS.split(",")))
INSERT: Final = f"INSERT INTO page ({COLUMNS}) VALUES ({_VALUES})"  # noqa: S608


class RecordEntry(NamedTuple):
    """A booking to write, with its time in seconds since 1970 and its page.

    `scores` are P(relevant) by topic, `remark` what else there is to say about the page, `mark` is
    its fingerprint, `packed` its whole text, b"" if that is not to be kept.
    """

    booking: Booking
    time: float
    title: str = ""
    text: str = ""
    probability: float | None = None
    is_copy: bool = False
    remark: str = ""
    scores: Mapping[str, float] = MappingProxyType({})
    mark: bytes | None = None
    packed: bytes = b""


def entry_of(
    booking: Booking, visit: Visit | None, time: float, *, keeps_text: bool = True
) -> RecordEntry:
    """Return what is written of a booking; `visit` is its page, None for a failure."""
    if visit is None:
        return RecordEntry(booking, time)
    judged, is_foreign = visit.judged, visit.verdict.is_foreign
    page, judgement = judged.page, judged.judgement
    return RecordEntry(
        booking,
        time,
        page.title,
        page.text,
        judgement.probability,
        visit.verdict.is_copy,
        f"refused by languages: it is in {page.language}" if is_foreign else "",
        judgement.scores,
        judged.mark,
        packed(page) if keeps_text else b"",
    )


def page_row(crawl: Crawl, entry: RecordEntry) -> tuple[Any, ...]:
    """Return the values of COLUMNS."""
    (row, x, reward), relevant, kind, outlinks, lease = entry.booking
    decision, url = lease.decision, lease.url
    store, choice = crawl.store, decision.choice
    final, is_seed = store.url(row), store.is_seed(row)
    return (
        row,
        None if is_seed else int(store["parent"][row]),
        entry.time,
        url,
        None if final == url else final,
        store.ledger.names[store["domain"][row]],
        entry.title[:LONGEST],
        store.anchors[row][:LONGEST],
        kind,
        relevant,
        entry.is_copy,
        reward,
        entry.probability,
        x.astype("<f4").tobytes(),
        kind_of(decision, is_seed=is_seed),
        None if choice is None else decision.leaf,
        None if choice is None else choice.splits,
        decision.q_value,
        *((None, None) if choice is None else size_of(choice)),
        _link(crawl, entry),
        entry.text[:LONGEST],
        int(store["url"][row]),
        int(store["host"][row]),
        int(outlinks[0]) if len(outlinks) else 0,
        len(outlinks),
        entry.mark,
    )


def rivals_row(crawl: Crawl, entry: RecordEntry) -> str:
    """Return the rivals of a booking's choice as JSON, "" without any."""
    store = crawl.store
    found = [
        (leaf, round(q, 5), store.url(row)[:LONGEST_URL], store.anchors[row][:LONGEST])
        for leaf, q, row in rivals_of(entry.booking.lease.decision)
    ]
    return json.dumps(found, ensure_ascii=False) if found else ""


def guest_rows(crawl: Crawl, entry: RecordEntry) -> list[tuple[int, str]]:
    """Return row and URL of the page of another shard on which the link was found, if any."""
    store, parent = crawl.store, int(crawl.store["parent"][entry.booking.experience.row])
    return [(parent, store.url(parent))] if parent in store.guests else []


def _link(crawl: Crawl, entry: RecordEntry) -> str | None:
    """Return what the link said, as JSON; name the codes of a URL that several fetched links have.

    The judge names all words.
    """
    choice, names = entry.booking.lease.decision.choice, crawl.store.names
    if choice is None or choice.said is None:
        return None
    if (learner := link_learner_of(crawl.policy)) is not None:
        texts = url_texts(choice.said.url)
        codes = choice.said.where[: len(texts)]
        often = np.flatnonzero(learner.fetched[codes] >= FETCHED).tolist()
        names.learn((int(codes[i]), texts[i]) for i in often)
    return json.dumps(parts_of(choice.said, names), ensure_ascii=False)
