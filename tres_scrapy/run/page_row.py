"""The row of the table `page` for a booking: what was fetched, and why it was chosen."""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np

from tres_scrapy.agent.link_learner import LinkLearner
from tres_scrapy.agent.policy import Choice, Decision, Policy
from tres_scrapy.crawl.crawl import Booking, Crawl
from tres_scrapy.links.code import url_texts
from tres_scrapy.run.reason import kind_of, parts_of, rivals_of, size_of
from tres_scrapy.run.run_file import LONGEST_URL
from tres_scrapy.topic.pack import Judged

FETCHED: Final = 3  # fewer fetched links say too little about a word
LONGEST: Final = 300  # characters kept of a title, a text and an anchor


def link_learner_of(policy: Policy) -> LinkLearner | None:
    """Return what a policy has learned from links, None if it has no link model."""
    learner = getattr(policy, "link_learner", None)
    return learner if isinstance(learner, LinkLearner) else None


def page_row(crawl: Crawl, booking: Booking, time: float) -> dict[str, Any]:
    """Return values by column; `time` is when it was booked, in seconds since 1970."""
    (row, x, reward, grade), relevant, kind, outlinks, decision, judged = booking
    store, choice, page = crawl.store, decision.choice, None if judged is None else judged.page
    final, is_seed = store.url(row), store.is_seed(row)
    samples, leaves = (None, None) if choice is None else size_of(choice)
    return {
        "row": row,
        "parent": None if is_seed else int(store["parent"][row]),
        "time": time,
        "url": decision.url,
        "final_url": None if final == decision.url else final,
        "domain": store.ledger.names[store["domain"][row]],
        "title": "" if page is None else page.title[:LONGEST],
        "anchor": store.anchors[row][:LONGEST],
        "kind": kind,
        "relevant": relevant,
        "copy": judged is not None and judged.is_copy,
        "reward": reward,
        "probability": None if judged is None else judged.probability,
        "grade": grade,
        "x": x.astype("<f4").tobytes(),
        "chosen": kind_of(decision, is_seed=is_seed),
        "leaf": None if choice is None else decision.leaf,
        "splits": None if choice is None else choice.splits,
        "q_value": decision.q_value,
        "samples": samples,
        "leaves": leaves,
        "link": _link(crawl, choice),
        "text": "" if page is None else page.text[:LONGEST],
        "url_number": int(store["url"][row]),
        "host": int(store["host"][row]),
        "first": int(outlinks[0]) if len(outlinks) else 0,
        "outlinks": len(outlinks),
        "mark": None if judged is None else judged.mark,
    }


def rivals_row(crawl: Crawl, decision: Decision) -> str:
    """Return the rivals of a choice as JSON, "" without any."""
    store = crawl.store
    found = [
        (leaf, round(q, 5), store.url(row)[:LONGEST_URL], store.anchors[row][:LONGEST])
        for leaf, q, row in rivals_of(decision)
    ]
    return json.dumps(found, ensure_ascii=False) if found else ""


def remark_of(judged: Judged) -> str:
    """Return why a page cannot be relevant, whatever it is about; "" if it can."""
    if not judged.page.may_be_kept:
        return "it says noindex"
    return f"refused by languages: it is in {judged.page.language}" if judged.is_foreign else ""


def guest_rows(crawl: Crawl, row: int) -> list[tuple[int, str]]:
    """Return row and URL of the page of another shard on which a link was found, if any."""
    store, parent = crawl.store, int(crawl.store["parent"][row])
    return [(parent, store.url(parent))] if parent in store.guests else []


def _link(crawl: Crawl, choice: Choice | None) -> str | None:
    """Return what the link said, as JSON; name the codes of a URL that several fetched links have.

    The judge names all words.
    """
    names = crawl.store.names
    if choice is None or choice.said is None:
        return None
    if (learner := link_learner_of(crawl.policy)) is not None:
        texts = url_texts(choice.said.url)
        codes = choice.said.where[: len(texts)]
        often = np.flatnonzero(learner.fetched[codes] >= FETCHED).tolist()
        names.learn((int(codes[i]), texts[i]) for i in often)
    return json.dumps(parts_of(choice.said, names), ensure_ascii=False)
