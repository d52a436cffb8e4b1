"""Restore a crawl from its journal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Container, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.agent.policy import Decision, Past
from tres_scrapy.crawl.crawl import DATA, PAGE, Crawl
from tres_scrapy.crawl.failure import BLAMELESS, OF_LINKS
from tres_scrapy.crawl.scout import Scout
from tres_scrapy.frontier.column import within
from tres_scrapy.frontier.feature import FEATURES, SEED_PATH
from tres_scrapy.frontier.finder import finders_of
from tres_scrapy.frontier.recovery import (
    restore_done,
    restore_given_up,
    restore_links,
    restore_redirect,
    restore_samples,
)
from tres_scrapy.frontier.store import REVISED, SAVED, Eligibility, SampleStore, State
from tres_scrapy.links.code import CODES, RaggedArray
from tres_scrapy.run.database import Database
from tres_scrapy.run.forgotten import DISTRUSTED, FORGOTTEN, Forgotten
from tres_scrapy.run.job_file import reading
from tres_scrapy.run.journal import (
    COUNTS,
    DESCRIBED,
    GIVEN_UP,
    MODELS,
    PASSED,
    SCOUTED,
    Journal,
)
from tres_scrapy.run.run_file import names_in, rules_in
from tres_scrapy.url.canonical import canonicalise
from tres_scrapy.url.whole_file import check_numbers

_NOT_YET = -1
_KILLS = 2  # at which a page was under way: it is not fetched again
_UNDER_WAY = "under way at kills"  # in `meta`: the starts that were counted, and kills by row
_UNLEARNED = {DATA, FORGOTTEN, DISTRUSTED}  # kinds that teach nothing
_LONGEST_NAME = 100  # characters of the name of a failure or a count


class Steps(NamedTuple):
    """The bookings of a journal in order; all columns have the same length."""

    rows: NDArray[np.int64]
    urls: NDArray[np.int64]
    hosts: NDArray[np.int64]
    kinds: Sequence[str]
    relevant: NDArray[np.bool_]
    past: Past


@reading()
def recover(journal: Journal, crawl: Crawl, own: Container[int] | None = None) -> list[int]:
    """Restore the state of a journal in a new crawl; raise TresError if the journal is damaged.

    Return the rows that were under way at two kills: they are not fetched a third time, and count
    towards MAX. Those under way at one kill are fetched one at a time, so that the page that kills
    the crawl is found.

    Leased samples become PENDING again, at the URLs that they were redirected to. They keep their
    slots of MAX and are fetched before all others. `own` holds the rows with a request of the
    spider's own; if given, other samples are dropped.
    """
    database, store = journal.database, crawl.store
    _restore_store(database, store)
    store.names.learn(names_in(database))
    journal.restore_more(crawl)
    linked = store["domain"].copy()  # before redirects move samples
    counted, before = _under_way(journal, len(store))
    given_up = {row for row, count in before.items() if count >= _KILLS}
    _restore_redirects(database, store, own, given_up)
    steps, state = _steps(database), _state(database)
    _restore_steps(crawl, steps, _counts(state))
    crawl.remember(marks(journal))  # what pages said tells the policy whom to believe
    if crawl.scout is not None:
        _restore_scout(crawl, crawl.scout, steps, int(state.get(SCOUTED, b"0")))
    store.closure.restore_passed(np.frombuffer(_joined(state, PASSED), np.int64))
    if any(forgotten := Forgotten.read(database)):
        store.closure.refuse(forgotten.covers)
    restore_given_up(store, np.frombuffer(_joined(state, GIVEN_UP), np.int64))
    _restore_revisions(crawl, state)
    restore_links(store, linked)
    del linked
    if own is not None:
        pending = store.pending_rows()
        store.drop(pending[[row not in own for row in pending.tolist()]])
    if sites := Forgotten.read(database, DISTRUSTED).sites:
        store.distrust(sites)
    pending = _drop_dead(store)
    leased = _leased(database, store)
    kills = _kills(journal, [decision.row for decision in leased], counted, before)
    killers = [row for row, count in kills.items() if count >= _KILLS]
    store.closure.close(store["url"][killers])
    store.drop(np.intersect1d(_numbers(killers), pending))
    for row in killers:
        store.ledger.count_unread(store["domain"][row])
    leased = [decision for decision in leased if kills[decision.row] < _KILLS]
    store.hold([decision.row for decision in leased])
    suspects = [decision for decision in leased if kills[decision.row]]
    first = [each for each in leased if not kills[each.row]] + _seeds(store, leased)
    known = _numbers([*killers, *(decision.row for decision in first + suspects)])
    others = np.setdiff1d(pending, known)
    if steps.kinds:
        crawl.policy.restore(_learned(steps), rules_in(database), state, others)
    elif len(others):  # links that were there before the first page
        crawl.policy.readmit(others)
    crawl.restore_first(first, suspects)
    journal.skip(crawl)
    return killers


@reading()
def items(journal: Journal) -> dict[tuple[int, int], str]:
    """Return the items that may not have been exported, by row and place on their page."""
    found = journal.database.execute("SELECT row, place, value FROM item ORDER BY row, place")
    return {(row, place): text for row, place, text in found}


@reading()
def interrupted(journal: Journal) -> frozenset[int]:
    """Return the rows that were leased when the crawl ended."""
    return frozenset(row for (row,) in journal.database.execute("SELECT row FROM lease"))


def requests(journal: Journal) -> dict[int, str]:
    """Return the spider's own requests by row."""
    return dict(journal.database.execute("SELECT row, value FROM request"))


@reading()
def marks(journal: Journal) -> list[tuple[int, bytes]]:
    """Return the rows and fingerprints of the pages in the order of their bookings."""
    found = journal.database.execute("SELECT row, mark FROM page WHERE mark NOTNULL ORDER BY step")
    return [(row, _bytes(mark)) for row, mark in found]


def _restore_store(database: Database, store: SampleStore) -> None:
    batches = database.execute(
        "SELECT samples, cues, counts, anchors, urls, hosts FROM batch ORDER BY number"
    ).fetchall()
    samples, cues, counts, *texts = zip(*batches, strict=True) if batches else ((),) * 6
    anchors, urls, hosts = (list(chain.from_iterable(map(json.loads, column))) for column in texts)
    if not all(isinstance(text, str) for text in chain(anchors, urls, hosts)):
        raise TypeError("a URL, host or anchor is not text")
    if not all(canonicalise(url) == url for url in urls):
        raise ValueError("a URL is not canonical")
    "".join(chain(anchors, hosts)).encode()  # raises UnicodeEncodeError: not exportable
    records = np.frombuffer(b"".join(samples), SAVED)
    check_numbers("a feature", records["static"])
    codes = np.frombuffer(b"".join(cues), "<u4")
    within(codes, CODES)
    said = RaggedArray(codes, np.frombuffer(b"".join(counts), "<u2").astype(np.int64))
    restore_samples(store, records, hosts=hosts, urls=urls, anchors=anchors, cues=said)


def _restore_redirects(
    database: Database, store: SampleStore, own: Container[int] | None, given_up: Container[int]
) -> None:
    """Redirect samples whose fetch was not booked; those that are lost leave their URLs open."""
    ways: dict[int, list[int]] = {}  # the numbers of the URLs by row; the last to move comes last
    for row, url in database.execute("SELECT row, url FROM redirect ORDER BY number"):
        ways[row] = [*ways.pop(row, []), url]
    for row, urls in ways.items():
        if own is None or row in own or row in given_up:
            restore_redirect(store, row, urls)


def _steps(database: Database) -> Steps:
    found = database.execute(
        "SELECT kind, relevant, reward, x, row, url_number, host, first, outlinks, sampled, "
        "grade FROM page ORDER BY step"
    ).fetchall()
    columns = list(zip(*found, strict=True)) if found else [()] * 11
    kinds, relevant, rewards, x, rows, urls, hosts, firsts, outlinks, sampled, grades = columns
    if not all(map(_is_name, set(kinds))):
        raise ValueError("the kind of a booking is not a name")
    past = Past(
        np.frombuffer(b"".join(x), "<f4").reshape(len(found), len(FEATURES)).copy(),
        np.array(rewards, dtype=np.float32),
        _numbers(rows),
        _numbers(firsts),
        _numbers(outlinks),
        _numbers([_NOT_YET if row is None else row for row in sampled]),
        np.array(grades, dtype=np.float32),
    )
    check_numbers("a feature", past.x)
    for name, values in (("a reward", past.rewards), ("a grade", past.grades)):
        check_numbers(name, values, largest=1.0)
        if (values < 0).any():
            raise ValueError(f"{name} is negative")
    judged = np.array(relevant, dtype=np.bool_)
    return Steps(_numbers(rows), _numbers(urls), _numbers(hosts), kinds, judged, past)


def _learned(steps: Steps) -> Past:
    """Return the bookings that the policy has learned from."""
    learned = np.array([kind not in _UNLEARNED for kind in steps.kinds], dtype=np.bool_)
    return Past._make(column[learned] for column in steps.past)


def _joined(state: dict[str, bytes], name: str) -> bytes:
    """Return what was saved in parts under a name, in order: each has its place in its own name."""
    parts = {
        int(key.removeprefix(name)): value for key, value in state.items() if key.startswith(name)
    }
    return b"".join(parts[place] for place in sorted(parts))


def _numbers(column: Sequence[int]) -> NDArray[np.int64]:
    return np.array(column, dtype=np.int64)


def _restore_steps(crawl: Crawl, steps: Steps, counts: Counter[str]) -> None:
    store, kinds, past = crawl.store, np.array(steps.kinds), steps.past
    for places in (past.firsts, past.outlinks, past.firsts + past.outlinks, past.sampled + 1):
        within(places, len(store) + 1)
    if len(set(steps.rows.tolist())) < len(steps.rows):
        raise ValueError("a sample is booked twice")
    restore_done(store, steps.rows, steps.urls, steps.hosts)
    pages = kinds == PAGE
    for row, kind, reward, outlinks in zip(
        steps.rows.tolist(),
        steps.kinds,
        past.rewards.tolist(),
        past.outlinks.tolist(),
        strict=True,
    ):
        if kind == DATA:
            store.paths[row] = SEED_PATH
        elif kind == PAGE or outlinks:
            store.paths[row] = store.path_after(row, reward)
    visits: NDArray[np.bool_] = kinds != DATA
    domains = store["domain"].take(steps.rows)
    blameless = np.isin(kinds, list(BLAMELESS))
    store.ledger.restore(
        domains[visits],
        pages[visits],
        steps.relevant[visits],
        blameless[visits],
        np.isin(kinds, list(OF_LINKS))[visits],
        finders=finders_of(store, steps.rows[visits]),
    )
    crawl.outlook.restore(steps.hosts[visits], past.rewards[visits] > 0)
    failures = Counter(kind for kind in steps.kinds if kind not in {PAGE, DATA})
    crawl.restore(int(pages.sum()), int((steps.relevant & pages).sum()), failures, counts)


def _restore_revisions(crawl: Crawl, state: dict[str, bytes]) -> None:
    records = np.frombuffer(_joined(state, DESCRIBED), REVISED)
    check_numbers("a feature", records["actions"])
    within(records["row"], len(crawl.store))
    crawl.store.revise(records["row"], records["actions"])
    described, _, model = state.get(MODELS, b"").decode().partition(" ")
    crawl.revision.restore(described, model)


def _restore_scout(crawl: Crawl, scout: Scout, steps: Steps, taken: int) -> None:
    scout.taken = taken
    places = steps.past.firsts.tolist(), steps.past.outlinks.tolist()
    for row, kind, first, count in zip(steps.rows.tolist(), steps.kinds, *places, strict=True):
        if kind == PAGE and crawl.store.is_seed(row):
            scout.note(np.arange(first, first + count))


def _leased(database: Database, store: SampleStore) -> list[Decision]:
    """Return the decisions for the samples that were leased."""
    leased = [_decision(*lease) for lease in database.execute("SELECT * FROM lease ORDER BY row")]
    rows = [decision.row for decision in leased]
    within(_numbers(rows), len(store))
    return [decision for decision in leased if store["state"][decision.row] == State.PENDING]


def _kills(
    journal: Journal, rows: Sequence[int], counted: int, before: dict[int, int]
) -> dict[int, int]:
    """Return at how many kills these rows, in order, were under way, and save it.

    Of those that were so before, only the first was fetched again. A crawl that was killed before
    it had started asked for nothing. Rows that were given up stay so, whether they wait or not:
    the request of a spider's own is gone then. `counted` and `before` are of `_under_way`.
    """
    meta = _meta(journal)
    starts = len(meta.get("starts", "").split())
    killed = "ended" not in meta and starts > counted
    waited = [row for row in rows if before.get(row)][1:]
    kills = {row: count for row, count in before.items() if count >= _KILLS}
    kills |= {row: int(before.get(row, 0)) + (killed and row not in waited) for row in rows}
    if rows or before:
        journal.note(_UNDER_WAY, json.dumps([starts, [*kills.items()]]))
    return kills


def _under_way(journal: Journal, samples: int) -> tuple[int, dict[int, int]]:
    """Return at how many starts kills were counted, and the kills by row."""
    counted, known = json.loads(_meta(journal).get(_UNDER_WAY, "[0, []]"))
    if not all(isinstance(number, int) for number in chain([counted], *known)):
        raise TypeError("a kill is not a number")
    kills = dict(known)
    within(_numbers([*kills]), samples)
    return counted, kills


def _meta(journal: Journal) -> dict[str, str]:
    return dict(journal.database.execute("SELECT name, value FROM meta"))


def _seeds(store: SampleStore, leased: Sequence[Decision]) -> list[Decision]:
    """Return decisions for the other seeds not fetched yet."""
    rows = set(store.seeds().tolist()) - {decision.row for decision in leased}
    return [Decision(row, None, None) for row in sorted(rows)]


def _decision(row: int, leaf: int | None, q_value: float | None) -> Decision:
    if not isinstance(leaf, int | None):
        raise TypeError("a leaf is not a number")
    check_numbers("Q", q_value or 0.0)
    return Decision(int(row), leaf, q_value)


def _drop_dead(store: SampleStore) -> NDArray[np.int64]:
    """Drop the PENDING samples that can never be fetched; return the others."""
    pending = store.pending_rows()
    dead = store.eligibility(pending) == Eligibility.DEAD
    store.drop(pending[dead])
    left: NDArray[np.int64] = pending[~dead]
    return left


def _state(database: Database) -> dict[str, bytes]:
    return {name: _bytes(value) for name, value in database.execute("SELECT * FROM state")}


def _counts(state: dict[str, bytes]) -> Counter[str]:
    counts = json.loads(state.get(COUNTS, b"{}"))
    if not all(_is_name(name) and isinstance(count, int) for name, count in counts.items()):
        raise TypeError("a count is not a number")
    return Counter(counts)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME and value.isprintable()


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):  # bytes(5) would be five zeros
        raise TypeError("a value is not bytes")
    return value
