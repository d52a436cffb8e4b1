"""Which validators (ETag, Last-Modified) a request carries, and which hosts can be trusted."""

from __future__ import annotations

from typing import Final

import numpy as np

from tres_scrapy.refresh.collection_row import Host, PageRow
from tres_scrapy.refresh.main_text import OTHER
from tres_scrapy.refresh.refresh_request import NOT_MODIFIED, PageAnswer
from tres_scrapy.refresh.verdict import ChangeVerdict

AUDITS: Final = 0.25  # share of unconditional visits on hosts whose validators are untested
LATER_AUDITS: Final = 0.05  # the same on hosts whose validators have reported a change


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
