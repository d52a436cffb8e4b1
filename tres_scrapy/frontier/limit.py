"""What bounds a frontier, whatever the web offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class FrontierLimits:
    """The samples that wait at most, those of one domain, and the failures that end a domain.

    By domain and not by host, for a trap has as many hosts as it likes.
    """

    pending: int = 10_000_000
    pending_per_domain: int = 1_000_000
    failures: int = 20  # in a row, without a page between them


LIMITS: Final = FrontierLimits()
