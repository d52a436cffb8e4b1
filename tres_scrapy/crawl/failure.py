"""Why a fetch failed, and whether that says something of the link or of its host."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, Self

from tres_scrapy.page.kind import CHALLENGE, CONSENT, LOGIN

# Kinds that are not counted against a domain that has given pages
BLAMELESS: Final = frozenset(
    {"robots", "not_html", "bad_document", "redirect_out_of_scope", "forgotten", "distrusted"}
)
DEAD_LINKS: Final = frozenset({"http_404", "http_410", "soft_404"})
# Kinds that are never counted against a domain: they say something of the link alone
OF_LINKS: Final = DEAD_LINKS | {"redirect_away", LOGIN}
REST: Final = 60.0  # seconds, of a host whose answer ended the judge, or that puts up such a wall:
RESTING: Final = frozenset({CHALLENGE, CONSENT})
STATUS: Final = "http_"  # and a number: the kind of an answer whose status is not 200
BUSY: Final = frozenset({408, 429})  # statuses below 500 with which a host says: not now


class Failure(NamedTuple):
    """A failure by its `kind`, the name under which it is counted.

    `passes` marks a failure of the host or of the network, not of the link: the fetch may succeed
    later. `retry_after` is how many seconds the host asks to be left alone for.
    """

    kind: str
    passes: bool = False
    retry_after: float | None = None

    @classmethod
    def of_status(cls, status: int, retry_after: float | None = None) -> Self:
        """Return the failure of an answer whose HTTP status is not 200."""
        passes = status in BUSY or 500 <= status < 600
        return cls(f"{STATUS}{status}", passes=passes, retry_after=retry_after if passes else None)

    @classmethod
    def of_wall(cls, kind: str) -> Self:
        """Return the failure of an answer that is a wall of a kind, such as `wall_login`."""
        return cls(kind, retry_after=REST if kind in RESTING else None)

    @property
    def ends_in_rest(self) -> bool:
        """Whether the host rests after it although the fetch is not tried again."""
        return self.retry_after is not None and not self.passes

    @property
    def blameless(self) -> bool:
        """Whether it is not counted against a domain that has given pages."""
        return self.kind in BLAMELESS

    @property
    def is_status(self) -> bool:
        """Whether the host answered with an HTTP status."""
        return self.kind.startswith(STATUS)

    @property
    def is_of_link(self) -> bool:
        """Whether it says something of the link alone."""
        return self.kind in OF_LINKS


def seconds_of(retry_after: str, now: datetime) -> float | None:
    """Return the seconds that a Retry-After header asks for, None if it cannot be read."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) < 10 else math.inf
    try:
        then = parsedate_to_datetime(text)
        then = then if then.tzinfo is not None else then.replace(tzinfo=UTC)
        return max(0.0, (then - now).total_seconds())
    except (ValueError, OverflowError):
        return None


BAD_DOCUMENT: Final = Failure("bad_document")
JUDGE_ERROR: Final = Failure("judge_error")
# The page ended the process that judges pages: its host rests before it may do so again.
JUDGE_ENDED: Final = Failure("judge_error", retry_after=REST)
SLOW_PAGE: Final = Failure("slow_page", retry_after=REST)  # it ended the process by taking so long
NOT_HTML: Final = Failure("not_html")
REDIRECT_AWAY: Final = Failure("redirect_away")  # to a domain of another shard, which fetches it
REDIRECT_CLOSED: Final = Failure("redirect_closed")
REDIRECT_LIMIT: Final = Failure("redirect_limit")
REDIRECT_OUT_OF_SCOPE: Final = Failure("redirect_out_of_scope")
REDIRECT_NOT_HTTP: Final = Failure("redirect_not_http")
ROBOTS: Final = Failure("robots")
SOFT_404: Final = Failure("soft_404")
