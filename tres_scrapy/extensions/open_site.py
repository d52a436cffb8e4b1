"""The sites that may be asked now, by the time of day; requests are saved as they are counted."""

from __future__ import annotations

from time import time

import numpy as np
from numpy.typing import NDArray

from tres_scrapy.crawl.visit import Visits
from tres_scrapy.extensions.job import Job


class OpenSites:
    """Says which sites are closed; without `visits`, none ever is.

    `opens_at` is when the first site opens, in seconds since 1970, while all links wait for that.
    """

    def __init__(self, visits: Visits | None = None, job: Job | None = None) -> None:
        self.is_limited = visits is not None
        self.opens_at: float | None = None
        self._visits = visits
        self._job = job
        if visits is not None and job is not None:
            visits.restore(job.visits())

    def closed(self) -> NDArray[np.bool_] | None:
        """Return which domains are closed now, as `Availability.closed`."""
        return None if self._visits is None else self._visits.closed(time())

    def is_closed(self, host: str) -> bool:
        """Return whether a request to a host must not be sent now."""
        return self._visits is not None and self._visits.is_closed(host, time())

    def next_time(self) -> float | None:
        """Return when the first closed site with waiting links opens, None without one."""
        return None if self._visits is None else self._visits.next_time(time())

    def note(self, host: str) -> None:
        """Count a request that is sent to a host."""
        self.opens_at = None
        visit = None if self._visits is None else self._visits.note(host, time())
        if visit is not None and self._job is not None:
            self._job.note_visit(visit)
