"""Why a fetch failed: a failure is an experience with reward 0 and not a page of T."""

from __future__ import annotations

from typing import Final, NamedTuple, Self

# Kinds that are not counted against a domain that has given pages
BLAMELESS: Final = frozenset({"robots", "not_html", "redirect_out_of_scope"})


class Failure(NamedTuple):
    """A failure by its `kind`, the name under which it is counted.

    `reached` is False if the host did not answer, which may be the fault of the network.
    """

    kind: str
    reached: bool = True

    @classmethod
    def of_status(cls, status: int) -> Self:
        """Return the failure of an answer whose HTTP status is not 200."""
        return cls(f"http_{status}")

    @property
    def blameless(self) -> bool:
        """Whether it is not counted against a domain that has given pages."""
        return self.kind in BLAMELESS


JUDGE_ERROR: Final = Failure("judge_error")
NOT_HTML: Final = Failure("not_html")
REDIRECT_CLOSED: Final = Failure("redirect_closed")
REDIRECT_LIMIT: Final = Failure("redirect_limit")
REDIRECT_OUT_OF_SCOPE: Final = Failure("redirect_out_of_scope")
REDIRECT_NOT_HTTP: Final = Failure("redirect_not_http")
ROBOTS: Final = Failure("robots")
SOFT_404: Final = Failure("soft_404")
