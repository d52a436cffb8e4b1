"""What the answer to a visit says about its page and about the validators of its host."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tres_scrapy.refresh.main_text import OTHER, SAME, Copy, compare, distance
from tres_scrapy.refresh.settings import RefresherOptions
from tres_scrapy.refresh.store import Host, PageRow
from tres_scrapy.refresh.visit import NOT_MODIFIED, PageAnswer, RefreshRequest

NEW, GONE, ERROR = "new", "gone", "error"
MISSING: Final = (404, 410)
AUDITS: Final = 0.25  # share of unconditional visits on hosts whose validators are untested
LATER_AUDITS: Final = 0.05  # the same on hosts whose validators have reported a change


class ChangeVerdict(NamedTuple):
    """What a visit found, and the copy that it was compared with."""

    change: str
    distance: int | None  # lanes of 256 in which the texts differ
    age: float  # seconds since the page was seen before
    before: Copy | None

    @property
    def failed(self) -> bool:
        """Whether the visit brought no copy of the page."""
        return self.change in {ERROR, GONE}


def judge(
    row: PageRow, request: RefreshRequest, answer: PageAnswer, now: float, options: RefresherOptions
) -> ChangeVerdict:
    """Return what a visit found; a missing page adds to the misses of its row."""
    change, lanes = _compared(row, request, answer, options)
    return ChangeVerdict(change, lanes, now - row.last_seen, row.copy)


def settle(
    row: PageRow, verdict: ChangeVerdict, now: float, options: RefresherOptions
) -> bool | None:
    """Update the statistics of a page; return whether it had changed, None if that is unknown."""
    change, gap = verdict.change, verdict.age
    if verdict.failed:
        _postpone(row, change, now, options)
        return None
    observed = None if change == NEW else change == OTHER
    if observed is not None and gap > 0:
        row.changes += observed
        row.quiet += not observed
        row.changed_time += gap * observed
        row.quiet_time += gap * (not observed)
    row.last_seen = now
    if observed or change == NEW:
        row.last_change = now
    row.misses = row.errors = 0
    row.retry_at, row.gone = 0.0, False
    return observed


def _compared(
    row: PageRow, request: RefreshRequest, answer: PageAnswer, options: RefresherOptions
) -> tuple[str, int | None]:
    if answer.status == NOT_MODIFIED and request.conditional:
        return SAME, 0
    reading = answer.reading
    if answer.status in MISSING or (reading is not None and reading.missing):
        row.misses += 1
        return (GONE if row.misses >= options.grace else ERROR), None
    copy = answer.copy
    if copy is None:
        return ERROR, None
    # A crawl keeps the boilerplate of a page with few words: its copy cannot be compared.
    loose = row.copy is not None and row.copy.loose and reading is not None and reading.thin
    if row.copy is None or row.gone or loose:
        return NEW, None
    return compare(row.copy, copy, options.minor), distance(row.copy, copy)


def _postpone(row: PageRow, change: str, now: float, options: RefresherOptions) -> None:
    """Set when a failed page is tried again; a page that is gone may come back."""
    row.errors += change == ERROR and not row.misses
    row.gone = row.gone or change == GONE
    turns = row.errors + row.misses - 1
    row.retry_at = now + min(options.retry * 2.0 ** min(turns, 60), options.max_age)


class Validators:
    """Chooses the validators to send; tests them with unconditional visits now and then."""

    def __init__(self, hosts: dict[str, Host], random: np.random.Generator) -> None:
        self._hosts, self._random = hosts, random

    def record(self, name: str) -> dict[str, Host]:
        """Return what is known of a host by its name, nothing if it is unknown."""
        return {name: self._hosts[name]} if name in self._hosts else {}

    def choose(self, name: str, row: PageRow) -> tuple[str | None, str | None]:
        """Return the validators to send for a page; none if they are unreliable or tested now."""
        host = self._hosts.get(name, Host())
        if row.copy is None or row.copy.loose or row.errors or row.misses or row.gone or host.lies:
            return None, None
        if self._random.random() < (LATER_AUDITS if host.honest else AUDITS):
            return None, None
        return row.etag, row.modified

    def keep(self, name: str, row: PageRow, answer: PageAnswer, verdict: ChangeVerdict) -> None:
        """Keep the new copy and its validators, and learn whether the host reports changes."""
        if answer.status == NOT_MODIFIED or answer.copy is None or verdict.failed:
            return
        validators, before = (answer.etag, answer.modified), (row.etag, row.modified)
        tested = before != (None, None) and not (row.copy and row.copy.loose)
        if verdict.change == OTHER and tested:
            host = self._hosts.setdefault(name, Host())
            if validators == before:
                host.lies += 1
            else:
                host.honest += 1
        row.copy = answer.copy
        row.etag, row.modified = validators
