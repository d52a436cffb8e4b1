"""Fills an empty store from the parts that a journal saves; ValueError if they do not fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.frontier.column import Rows, within
from tres_scrapy.frontier.feature import Path
from tres_scrapy.frontier.host import host_of
from tres_scrapy.frontier.store import NO_PARENT, SAVED, SampleStore, State
from tres_scrapy.links.code import RaggedArray


def restore_samples(
    store: SampleStore,
    records: NDArray[np.void],
    *,
    hosts: Sequence[str],
    urls: Sequence[str],
    anchors: Sequence[str],
    cues: RaggedArray,
) -> None:
    """Add all rows to an empty store, each PENDING; `records` are of type SAVED."""
    if len(anchors) != len(records):
        raise ValueError(f"{len(anchors)} anchors, must be {len(records)}: one a sample")
    if len(cues.counts) != len(records) or int(cues.counts.sum()) != len(cues.codes):
        raise ValueError("the cues of links do not fit the samples")
    for host in hosts:
        store.hosts.number_of(host)
    store.closure.restore(urls)
    store.anchors.extend(anchors)
    store.cues.extend(cues)
    within(records["url"], len(urls))
    if store.admission.scope is not None:  # seeds and targets of redirects do not count
        numbers, firsts = np.unique(records["url"], return_index=True)
        linked = numbers[records["parent"][firsts] != NO_PARENT]
        store.admission.scope.enter([urls[number] for number in linked.tolist()])
    within(records["host"], len(store.hosts.names))
    rows = np.arange(len(records))
    if not ((records["parent"] >= NO_PARENT) & (records["parent"] < rows)).all():
        raise ValueError("a sample comes before the page it was found on")
    store.extend(len(records))
    for name in SAVED.names or ():
        store[name][:] = records[name]
    store["domain"][:] = store.hosts.domains(records["host"])
    store.count_pending(records["host"])


def restore_done(
    store: SampleStore, rows: Rows, urls: NDArray[np.int64], hosts: NDArray[np.int64]
) -> None:
    """Mark rows DONE, each with its final URL and host."""
    within(rows, len(store))
    within(urls, len(store.closure.urls))
    within(hosts, len(store.hosts.names))
    store.leave_pending(rows, State.DONE)
    store.closure.close(store["url"].take(rows))
    store.closure.close(urls)
    store["url"][rows] = urls
    store["host"][rows] = hosts
    store["domain"][rows] = store.hosts.domains(hosts)
    for host in np.unique(hosts).tolist():
        store.hosts.mark_known(host)


def restore_guests(store: SampleStore, guests: Sequence[tuple[int, Path]]) -> None:
    """Note which rows stand for pages of other shards."""
    rows = np.array([row for row, _ in guests], dtype=np.int64)
    within(rows, len(store))
    store.leave_pending(rows, State.DONE)
    store.guests.update(guests)


def restore_redirect(store: SampleStore, row: int, urls: Sequence[int]) -> None:
    """Move a row, before any is DONE, along redirects to `urls`, numbers; it stays PENDING."""
    within(np.array([row], dtype=np.int64), len(store))
    within(np.array(urls, dtype=np.int64), len(store.closure.urls))
    names = [store.closure.urls[number] for number in urls]
    if any(store.hosts.find(host_of(url)) is None for url in names):
        raise ValueError("a redirect leads to a host that is not known")
    store.lease(row)
    for url in names:
        store.redirect(row, url)
    store.release(row)


def restore_given_up(store: SampleStore, hosts: NDArray[np.int64]) -> None:
    """Note hosts that an earlier run gave up: in this run they may be fetched from."""
    within(hosts, len(store.hosts.names))
    store.hosts.note_given_up(hosts.tolist())


def restore_links(store: SampleStore, domains: NDArray[np.int32]) -> None:
    """Count links between domains, after paths and DONE rows are restored.

    `domains` are the domains of all rows before any redirect. Raise ValueError if the parent of a
    sample has no page.
    """
    parents = store["parent"]
    pages = store.paths.keys() | store.guests.keys()
    if not pages >= set(np.unique(parents).tolist()) - {NO_PARENT}:
        raise ValueError("a sample was found on a row without a page")
    if not store.ledger.inlinks:
        return
    firsts = np.flatnonzero(np.diff(parents, prepend=NO_PARENT - 1))
    for first, targets in zip(firsts, np.split(domains, firsts)[1:], strict=True):
        parent = int(parents[first])
        store.note_links(parent, targets, store.path_to(parent))
